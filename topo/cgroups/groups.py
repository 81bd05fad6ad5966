"""Groups of processes whose CPU time is accounted together, and what both versions of control groups have in common.

Paths are those of :func:`topo.cgroups.forms.group`. Pids are those of the caller's namespace.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from topo.cgroups.forms import TOP


class Unsupported(Exception):
    """A group cannot be given the CPUs or the limit that were asked for; the message says why."""


class Groups(ABC):
    """Groups by path. ``mechanism`` says in a user's words what does the accounting."""

    mechanism: str

    @abstractmethod
    def make(self, path: PurePosixPath) -> None:
        """Make a group, and those above it, unless they are there; OSError if that is not possible."""

    @abstractmethod
    def place(self, path: PurePosixPath, pids: Iterable[int]) -> None:
        """Have processes be in a group from now on, with all their threads; those that have ended are passed over."""

    @abstractmethod
    def cpu_ns(self, path: PurePosixPath) -> int:
        """CPU time that was spent in a group and those below it."""

    @abstractmethod
    def pin(self, path: PurePosixPath, cpus: Collection[int]) -> None:
        """Have a group run on these CPUs alone; :class:`Unsupported` where that is not possible."""

    @abstractmethod
    def limit(self, path: PurePosixPath, cpus: float) -> None:
        """Let a group have so many CPUs at the most, like 0.5; :class:`Unsupported` where that is not possible."""

    @abstractmethod
    def remove(self, path: PurePosixPath) -> Sequence[int]:
        """Remove a group and those below it, if it is there; if processes are in it, only say which they are."""

    @abstractmethod
    def runs(self) -> frozenset[str]:
        """The runs that have groups, by name."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove the group of all runs, if none is in it any more."""


class Directories(Groups):
    """Control groups as the kernel shows them: directories, the same ones in every hierarchy of ``roots``."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = tuple(dict.fromkeys(roots))  # controllers that are mounted together have one directory

    def make(self, path: PurePosixPath) -> None:
        for root in self._roots:
            folder = root
            for name in path.parts:
                folder /= name
                with suppress(FileExistsError):
                    self._mkdir(folder)
                    self._made(folder)

    def _made(self, folder: Path) -> None:
        """A directory is new: do what it needs before processes can be in it."""

    def place(self, path: PurePosixPath, pids: Iterable[int]) -> None:
        for root in self._roots:
            for pid in pids:
                with suppress(ProcessLookupError):
                    self._write(root / path / "cgroup.procs", f"{pid}\n")

    def remove(self, path: PurePosixPath) -> Sequence[int]:
        if there := self._pids(path):
            return there
        try:
            for folder in self._folders(path):
                self._rmdir(folder)
        except OSError:
            if there := self._pids(path):  # they came between the two
                return there
            raise
        return ()

    def runs(self) -> frozenset[str]:
        return frozenset(folder.name for root in self._roots for folder in (root / TOP).glob("*/"))

    def tidy(self) -> None:
        for root in self._roots:
            with suppress(OSError):  # not there, or not empty
                self._rmdir(root / TOP)

    def _pids(self, path: PurePosixPath) -> list[int]:
        found = {int(pid) for folder in self._folders(path) for pid in (folder / "cgroup.procs").read_text().split()}
        return sorted(found)

    def _folders(self, path: PurePosixPath) -> Iterator[Path]:
        """The directories of a group and those below it, lowest first."""
        for root in self._roots:
            for folder, _, _ in os.walk(root / path, topdown=False):
                yield Path(folder)

    # All that changes something; what the kernel refuses is an OSError at once.

    def _mkdir(self, folder: Path) -> None:
        folder.mkdir()

    def _rmdir(self, folder: Path) -> None:
        folder.rmdir()

    def _write(self, file: Path, text: str) -> None:
        with file.open("r+b", buffering=0) as control:
            control.write(text.encode("ascii"))
