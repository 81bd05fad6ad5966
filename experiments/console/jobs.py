"""Collectives in the background of a console: one at a time, once or over and over, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from experiments.errors import TreecastError, UserError
from experiments.operations import Operations
from experiments.results import Run
from experiments.units import format_size
from topo.ovs import OvsError
from topo.tc import BatchError


class _Abandoned(Exception):
    """The console ends and waits for nobody."""


class QuietProgress:
    """What an operation is at, to be asked for; raises in the operation's thread once it is ``abandoned``."""

    def __init__(self) -> None:
        self.abandoned = False
        self._phase, self._note, self._done, self._total = "", "", 0, 0

    def __str__(self) -> str:
        share = f", {self._done / self._total:.0%} of the chunks" if self._total else ""
        return ", ".join(part for part in (self._phase, self._note) if part) + share

    def phase(self, name: str, total: int | None) -> None:
        """A phase begins."""
        self._look()
        self._phase, self._note, self._done, self._total = name, "", 0, total or 0

    def advance(self, done: int, total: int) -> None:
        """The phase is so far."""
        self._look()
        self._done, self._total = done, total

    def note(self, text: str) -> None:
        """A word."""
        self._note = text

    def close(self) -> None:
        """Nothing is drawn."""

    def _look(self) -> None:
        if self.abandoned:
            raise _Abandoned


class Jobs:
    """Runs operations by ``operations``; every line that people should see goes to ``tell``.

    ``runs`` has all that ended, ``failed`` whether any was not verified. Once the endpoints are out of step, nothing
    more can be run.
    """

    def __init__(self, operations: Operations, progress: QuietProgress, tell: Callable[[str], None]) -> None:
        self.runs: list[Run] = []
        self.failed = False
        self._operations = operations
        self._progress = progress
        self._tell = tell
        self._repeat = False
        self._broken = ""
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether an operation is on."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def status(self) -> str:
        """What goes on, in a line."""
        if self.busy:
            return f"{self._progress}{', repeated' if self._repeat else ''}"
        return self._broken or "idle"

    def start(self, algorithm: str, size_bytes: int, *, repeat: bool) -> None:
        """Begin; :class:`UserError` where that cannot be."""
        if self.busy:
            raise UserError(f"{algorithm}: an operation is on; `stop` ends a repetition, `wait` waits")
        if self._broken:
            raise UserError(f"{algorithm}: {self._broken}")
        operations = self._operations.of(algorithm, size_bytes)
        self._repeat = repeat
        self._thread = threading.Thread(target=self._work, args=(operations,), name="operations", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No further repetition; the operation under way goes on to its end."""
        self._repeat = False

    def wait(self) -> None:
        """Until the operation has ended, and its repetitions, too."""
        if self._thread is not None:
            self._thread.join()

    def abandon(self) -> None:
        """End what goes on without waiting for it to succeed."""
        self._repeat = False
        self._progress.abandoned = True
        self.wait()

    def _work(self, operations: Operations) -> None:
        more = True
        while more:
            try:
                run = operations.one(len(self.runs) + 1)
            except _Abandoned:
                return
            except (TreecastError, BatchError, OvsError, OSError) as problem:
                self._break(f"{problem}; no more operations can be run here")
                return
            self.runs.append(run)
            self._tell(told(run))
            if run.error is not None:
                self._break("an operation has failed, and the endpoints are out of step: start the console again")
            more = self._repeat and run.error is None

    def _break(self, why: str) -> None:
        self.failed = True
        self._broken = why
        self._tell(why)


def told(run: Run) -> str:
    """An operation that has ended, in a line: how fast, what was recovered, the verdict."""
    words = f"{run.algorithm} {run.iteration}, {format_size(run.bytes_per_rank)}"
    if run.error is not None:
        return f"{words}: FAILED: {run.error}"
    assert run.seconds is not None
    assert run.limit_ratio is not None
    return (
        f"{words}: {run.seconds * 1e3:.0f} ms, {run.limit_ratio:.3f} of the limit, {run.packets.recovered} recovered, "
        f"verified, {run.fidelity.verdict}"
    )
