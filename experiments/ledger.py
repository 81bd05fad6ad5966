"""What runs change on the host itself, written down before it is changed, and how it is undone.

A run's interfaces, bridges, namespaces and processes live in its sandbox and end with it. Three things do not: sysctls
that are the same for the whole machine, the run's control groups (``topo.cgroups``), which are called after it, and its
folder. They are noted in ``/run/treecast/``::

    <run>/           the folder; as seen from the host it has a socket alone (the sandbox has its own file system there)
    <run>.json       whose it is: boot id, and pid and start time of the run's processes
    sysctls.json     each changed sysctl: the value it had, and the values that we gave it

Whoever comes next, another run or ``treecast clean``, undoes what dead runs have left. A run is dead when its process
is: a pid alone could belong to somebody else by now, so its start time and the boot must be the same. Sysctls go back
when the last live run ends, unless somebody else has changed them since. A control group that somebody else has put
processes into stays, and is tried again by whoever comes next. The lock is on the directory itself, which goes too when
it is empty.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments import signals
from experiments.processes import Process
from experiments.sysctls import Sysctls
from topo.cgroups.find import find
from topo.cgroups.forms import group
from topo.cgroups.groups import Groups

ROOT = Path("/run/treecast")
SYSCTLS = "sysctls.json"
DYING_S = 10.0
"""How long the processes of a killed run may take to end: the kernel ends them, some hundred at most."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run as it is written down. ``child`` is the first process of its sandbox."""

    boot: str
    parent: Process
    child: Process | None = None

    @classmethod
    def read(cls, path: Path) -> Entry | None:
        """The entry in a file; None where the file is cut short or not ours."""
        try:
            plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            child = plain["child"]
            return cls(plain["boot"], Process(**plain["parent"]), Process(**child) if child else None)
        except (OSError, ValueError, KeyError, TypeError):
            return None


class LiveRun:
    """This run's page in the ledger, from :meth:`Ledger.open_run`."""

    def __init__(self, ledger: Ledger, name: str, entry: Entry) -> None:
        self._ledger = ledger
        self._entry = entry
        self.name = name
        self.rundir = ledger.root / name

    def raise_sysctls(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Raise each to at least the value wanted, until the last run ends; the values that are now in force."""
        return self._ledger.raise_sysctls(wanted)

    def record_child(self, pid: int) -> None:
        """Note the sandbox's first process."""
        self._ledger.record(self.name, Entry(self._entry.boot, self._entry.parent, Process.of(pid)))


class Ledger:
    """The ledger in ``root``. ``proc`` is where the proc file system is; ``groups`` are this machine's by default."""

    def __init__(
        self,
        root: Path = ROOT,
        proc: Path = Path("/proc"),
        modules: Path = Path("/sys/module"),
        groups: Groups | None = None,
    ) -> None:
        self.root = root
        self._proc = proc
        self._modules = modules
        self._groups = groups or find()

    @property
    def boot(self) -> str:
        """Which start of the machine this is."""
        return (self._proc / "sys/kernel/random/boot_id").read_text().strip()

    @property
    def _sysctls(self) -> Sysctls:
        return Sysctls(self.root / SYSCTLS, self.boot, self._proc / "sys", self._modules)

    @contextmanager
    def open_run(self) -> Iterator[LiveRun]:
        """Undo what dead runs left, then enter this process as a run; leaving the context undoes what the run did."""
        me = Process.of(os.getpid())
        assert me is not None  # we run
        with signals.held(), self._locked():
            self._sweep()
            name = self._free_name(me.pid)
            entry = Entry(self.boot, me)
            self._write(name, entry)
            (self.root / name).mkdir(mode=0o755)
        try:
            yield LiveRun(self, name, entry)
        finally:
            with signals.held(), self._locked():
                self._forget(name)
                self._sweep()

    def clean(self) -> tuple[list[str], int]:
        """Undo what dead runs left: what was done, a line each, and how many live runs were left alone."""
        if not self.root.exists():
            return [], 0
        with signals.held(), self._locked():
            return self._sweep(), len(self._live())

    def live(self) -> list[str]:
        """The runs that are on, by name."""
        return self._live()

    def raise_sysctls(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """See :meth:`LiveRun.raise_sysctls`."""
        with signals.held(), self._locked():
            return self._sysctls.raise_to(wanted)

    def record(self, name: str, entry: Entry) -> None:
        """Write down what is known of a run."""
        with signals.held(), self._locked():
            self._write(name, entry)

    def _write(self, name: str, entry: Entry) -> None:
        draft = self.root / f".{name}.part"
        draft.write_text(json.dumps(asdict(entry)), encoding="utf-8")
        draft.replace(self.root / f"{name}.json")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone in the directory, which is made if need be and removed if nothing is left in it."""
        handle = self._open_locked()
        try:
            yield
        finally:
            with suppress(OSError):  # not empty
                self.root.rmdir()
            os.close(handle)

    def _open_locked(self) -> int:
        while True:
            self.root.mkdir(mode=0o755, exist_ok=True)
            try:
                handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue  # removed between the two lines by a run that ended
            fcntl.flock(handle, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if self.root.stat().st_ino == os.fstat(handle).st_ino:
                    return handle
            os.close(handle)  # the one we locked was removed meanwhile

    def _free_name(self, pid: int) -> str:
        number = 1
        while (self.root / f"{(name := f'{pid}' if number == 1 else f'{pid}-{number}')}.json").exists():
            number += 1
        return name

    def _entries(self) -> dict[str, Entry | None]:
        paths = (path for path in self.root.glob("*.json") if path.name != SYSCTLS)
        return {path.stem: Entry.read(path) for path in sorted(paths)}

    def _live(self) -> list[str]:
        boot = self.boot
        return [name for name, entry in self._entries().items() if entry and entry.boot == boot and entry.parent.alive]

    def _sweep(self) -> list[str]:
        """Undo what dead runs left; with no run left at all, also put the sysctls back."""
        done = []
        live = self._live()
        for name, entry in self._entries().items():
            if name not in live:
                if entry and entry.boot == self.boot and entry.child:
                    entry.child.end(DYING_S)
                kept = self._forget(name)
                done.append(kept or f"removed what run {name} left, which had been killed")
        for path in self.root.iterdir():
            if path.name.startswith(".") or (path.is_dir() and not (self.root / f"{path.name}.json").exists()):
                self._remove(path)  # a run was killed between two steps
                done.append(f"removed {path}")
        if not live:
            done += self._sysctls.restore()
        if not self._entries():
            self._groups.tidy()
        return done

    def _forget(self, name: str) -> str | None:
        """Remove what a run has left on the host; its page stays as long as there is something, which is said."""
        self._remove(self.root / name)
        if why := self._groups_stay(name):
            return f"left the control groups of run {name}: {why}"
        self._remove(self.root / f"{name}.json")
        return None

    def _groups_stay(self, name: str) -> str | None:
        """Remove a run's control groups; why they could not be."""
        try:
            there = self._groups.remove(group(name))
        except OSError as problem:
            return f"{problem.filename}: {problem.strerror}"
        return f"processes {', '.join(map(str, there))} are in them" if there else None

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
