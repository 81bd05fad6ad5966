"""CPU time by process, where there are no control groups to account with."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from topo.cgroups.groups import Groups, Unsupported


class ProcessTimes(Groups):
    """The clocks of the processes themselves. What a process uses after the last look and before its end is missed."""

    def __init__(self, why: str) -> None:
        self.mechanism = f"process times ({why})"
        self._why = why
        self._begun: dict[PurePosixPath, dict[int, int]] = {}
        self._latest: dict[int, int] = {}

    def make(self, path: PurePosixPath) -> None:
        self._begun.setdefault(path, {})

    def place(self, path: PurePosixPath, pids: Iterable[int]) -> None:
        self._begun[path] |= {pid: self._look(pid) for pid in pids}

    def cpu_ns(self, path: PurePosixPath) -> int:
        members = [pids for member, pids in self._begun.items() if member.is_relative_to(path)]
        return sum(self._look(pid) - begun for pids in members for pid, begun in pids.items())

    def pin(self, path: PurePosixPath, cpus: Collection[int]) -> None:  # noqa: ARG002  # it is never possible
        raise Unsupported(self._why)

    def limit(self, path: PurePosixPath, cpus: float) -> None:  # noqa: ARG002  # the same
        raise Unsupported(self._why)

    def remove(self, path: PurePosixPath) -> Sequence[int]:
        for member in [member for member in self._begun if member.is_relative_to(path)]:
            del self._begun[member]
        return ()

    def runs(self) -> frozenset[str]:
        return frozenset()

    def tidy(self) -> None:
        """Nothing was made."""

    def _look(self, pid: int) -> int:
        """A process's CPU time, in ns; where it has ended, as it was at the last look."""
        try:
            self._latest[pid] = time.clock_gettime_ns(_clock(pid))
        except OSError:
            self._latest.setdefault(pid, 0)
        return self._latest[pid]


def _clock(pid: int) -> int:
    """The clock of a process's CPU time, all its threads': clock_getcpuclockid(3), which Python does not have."""
    return ~pid << 3 | 2  # CPUCLOCK_SCHED (kernel: linux/posix-timers_types.h)
