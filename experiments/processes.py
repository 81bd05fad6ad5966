"""Processes by pid and start time, so that none is taken for an earlier one that had the same pid."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process. ``started`` is in clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has ``pid`` now; None if there is none, or only its exit status is left of it."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        state, *rest = stat.rpartition(")")[2].split()  # proc(5): the name in brackets may hold anything
        return None if state in "ZX" else cls(pid, int(rest[18]))

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return Process.of(self.pid) == self

    def end(self, patience_s: float) -> None:
        """Wait until it has ended; after ``patience_s`` kill it."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            deadline = time.monotonic() + patience_s
            while self.alive:  # asked after the handle was opened, so the handle is this very process
                if time.monotonic() > deadline:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                time.sleep(0.02)
        finally:
            os.close(handle)
