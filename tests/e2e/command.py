"""The real command in a process of its own, as a user starts it: its words, its results, the processes behind it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from experiments.processes import Process
from experiments.results import Run, Summary
from topo.cgroups.find import find

TREECAST = Path(sys.executable).parent / "treecast"
NEEDS = ("ovs-vswitchd", "ovsdb-server", "mnexec", "tc", "ip", "ethtool")
"""Programs without which no run is possible."""
BOUND_S = 90.0
"""Far beyond what any run of the tests takes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended. ``output`` is the folder that holds the result folders."""

    code: int
    out: str
    err: str
    output: Path

    @property
    def latest(self) -> Path:
        """The result folder that ``latest`` points at."""
        return self.output / "latest"

    @property
    def summary(self) -> Summary:
        """The results; asserts that there are some."""
        return Summary.from_json((self.latest / "summary.json").read_text())

    def verified(self) -> Run:
        """The results of the only operation; asserts that every byte of it was right."""
        assert (self.code, self.err) == (0, ""), f"{self.code}: {self.out}{self.err}"
        [run] = self.summary.runs
        assert run.verified
        assert (run.wrong_bytes, run.error) == (0, None)
        return run

    def hits(self, name: str) -> list[dict[str, Any]]:
        """The packets that impairments struck in the operation ``name``, like ``mcast_allgather-1``."""
        return [json.loads(line) for line in (self.latest / f"injected-{name}.jsonl").read_text().splitlines()]


class Command:
    """``treecast …`` started. Its words go to files, so that nobody has to read along."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = folder / "stdout", folder / "stderr"
        self.output = folder / "results"
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self._process = subprocess.Popen([TREECAST, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.pid = self._process.pid

    @property
    def out(self) -> str:
        """What it has said on standard output so far."""
        return self._files[0].read_text()

    @property
    def err(self) -> str:
        """What it has said on standard error so far."""
        return self._files[1].read_text()

    def says(self, text: str) -> Command:
        """Wait until ``text`` is on its standard output; fails if it ends without."""

        def said() -> bool:
            ended = self._process.poll() is not None  # asked before its words are read, so that none is missed
            if text in self.out:
                return True
            assert not ended, f"ended with {self._process.returncode} before {text!r}: {self.out}{self.err}"
            return False

        until(said, f"{text!r} on standard output")
        return self

    def ended(self, bound_s: float = BOUND_S) -> Finished:
        """Wait for its end; if that does not come in time, the process is killed, and the test fails."""
        try:
            code = self._process.wait(bound_s)
        except subprocess.TimeoutExpired:
            stuck = "\n".join(f"{pid} in {_waits(pid)}: {words(pid)}" for pid in [self.pid, *descendants(self.pid)])
            self.kill()
            raise AssertionError(f"has not ended in {bound_s:g} s: {self.out}{self.err}\n{stuck}") from None
        return Finished(code, self.out, self.err, self.output)

    def kill(self) -> None:
        """End it, if need be by force."""
        self._process.kill()
        self._process.wait()


def treecast(folder: Path, *arguments: str) -> Finished:
    """``treecast …`` from start to end."""
    return Command(folder, *arguments).ended()


def start(folder: Path, *arguments: str) -> Command:
    """``treecast run …`` started, with its results in ``folder``."""
    return Command(folder, "run", *arguments, "--output", str(folder / "results"))


def run(folder: Path, *arguments: str) -> Finished:
    """``treecast run …`` from start to end."""
    return start(folder, *arguments).ended()


def until(condition: Callable[[], T], what: str) -> T:
    """What ``condition`` returns once it is true; fails after a bound that is far beyond what is needed."""
    deadline = time.monotonic() + BOUND_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {BOUND_S:g} s: {what}"
        time.sleep(0.01)
    return value


def children(pid: int) -> list[int]:
    """Pids of the children of a process."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return sorted(found)


def descendants(pid: int) -> list[int]:
    """Pids of all processes below a process, as the machine numbers them."""
    return [below for child in children(pid) for below in (child, *descendants(child))]


def words(pid: int) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _waits(pid: int) -> str:
    """What a process waits in, by the kernel's name for it."""
    try:
        return Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return "?"


def namespaces(pid: int) -> set[str]:
    """The namespaces of a process that are not ours, like ``net:[4026531840]``."""
    found = set()
    for kind in ("net", "pid", "mnt"):
        try:
            name = str(Path(f"/proc/{pid}/ns/{kind}").readlink())
        except OSError:  # it is gone, or not ours to look into
            continue
        if name != str(Path(f"/proc/self/ns/{kind}").readlink()):
            found.add(name)
    return found


@dataclass(frozen=True)
class Traces:
    """The processes of a run and their namespaces, noted while it is on, to be looked for when it is over."""

    processes: frozenset[Process]
    namespaces: frozenset[str]

    @classmethod
    def of(cls, pid: int) -> Traces:
        """Those of the run that process ``pid`` is the parent of."""
        pids = [pid, *descendants(pid)]
        found = [process for process in map(Process.of, pids) if process is not None]
        return cls(frozenset(found), frozenset(name for one in pids for name in namespaces(one)))

    def left(self) -> list[str]:
        """What is there of it still."""
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        inhabited = {name for pid in pids for name in namespaces(pid)}
        alive = [f"process {one.pid}: {words(one.pid)}" for one in self.processes if one.alive]
        return sorted([*alive, *(self.namespaces & inhabited)])


def host_state() -> dict[str, Any]:
    """All of the machine's own state that a run could change, but for its processes."""
    state: dict[str, Any] = {kind: _says("ip", "-o", kind, "show") for kind in ("link", "address", "route", "rule")}
    state["netns"] = _says("ip", "netns", "list")
    state["qdiscs"] = _says("tc", "qdisc", "show")
    state["mounts"] = Path("/proc/self/mounts").read_text()
    state["ledger"] = sorted(map(str, Path("/run/treecast").rglob("*")))
    state["control groups"] = sorted(find().runs())
    state["shared memory"] = sorted(path.name for path in Path("/dev/shm").iterdir())
    folders = ("net/core", "net/ipv4", "net/ipv4/neigh/default", "net/ipv4/conf/all", "net/ipv6/conf/all")
    knobs = (path for folder in folders for path in sorted(Path("/proc/sys", folder).glob("*")) if path.is_file())
    state["sysctls"] = {str(path): _value(path) for path in knobs}
    return state


def _value(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as problem:  # as of a secret that is not set
        return str(problem.errno)


def _says(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
