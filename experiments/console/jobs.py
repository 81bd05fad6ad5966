"""Collectives in the background of a console: one at a time, once or over and over, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from experiments.errors import Cancelled, TreecastError, UserError
from experiments.operations import Operations
from experiments.results import Run
from experiments.units import format_size
from topo.ovs import OvsError
from topo.tc import BatchError

STOPPED = "stopped by hand"
"""The error of an operation that was not wanted any more."""


class _Abandoned(Exception):
    """The console ends and waits for nobody."""


class QuietProgress:
    """What an operation is at, to be asked for.

    In the operation's thread it raises once it is ``abandoned``, and, while bytes move, once that is ``cancelled``.
    """

    def __init__(self) -> None:
        self.abandoned = False
        self.cancelled = False
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
        if self.cancelled:
            raise Cancelled(STOPPED)
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

    ``runs`` has all that ended, ``failed`` whether any was not verified although it was wanted to its end. An operation
    that fails ends its repetition, and no more: the next is one of the hosts that are left.
    """

    def __init__(self, operations: Operations, progress: QuietProgress, tell: Callable[[str], None]) -> None:
        self.runs: list[Run] = []
        self.failed = False
        self._operations = operations
        self._progress = progress
        self._tell = tell
        self._repeat = False
        self._idle = threading.Event()
        self._idle.set()

    @property
    def busy(self) -> bool:
        """Whether an operation is on."""
        return not self._idle.is_set()

    @property
    def status(self) -> str:
        """What goes on, in a line."""
        return f"{self._progress}{', repeated' if self._repeat else ''}" if self.busy else "idle"

    def start(self, algorithm: str, size_bytes: int, *, repeat: bool) -> None:
        """Begin; :class:`UserError` where that cannot be."""
        if self.busy:
            raise UserError(f"{algorithm}: an operation is on; `stop` ends it, `wait` waits for it")
        operations = self._operations.of(algorithm, size_bytes)
        self._repeat, self._progress.cancelled = repeat, False
        self._idle.clear()
        threading.Thread(target=self._work, args=(operations,), name="operations", daemon=True).start()

    def finish(self) -> None:
        """No further repetition; the operation under way goes on to its end."""
        self._repeat = False

    def stop(self) -> None:
        """No further repetition, and an end of the operation under way, soon if not at once."""
        self._repeat, self._progress.cancelled = False, True

    def wait(self) -> None:
        """Until the operation has ended, and its repetitions, too. May be interrupted, which the operation is not."""
        self._idle.wait()

    def abandon(self) -> None:
        """End what goes on without waiting for it to succeed."""
        self._repeat = False
        self._progress.abandoned = True
        self.wait()

    def _work(self, operations: Operations) -> None:
        try:
            while self._well(operations) and self._repeat:
                continue
        except _Abandoned:
            return
        except (TreecastError, BatchError, OvsError, OSError) as problem:
            self.failed = True
            self._tell(f"{operations.name}: {problem}")
        finally:
            self._idle.set()

    def _well(self, operations: Operations) -> bool:
        """Run one, and tell how it ended; whether that was well."""
        run = operations.one(len(self.runs) + 1)
        self.runs.append(run)
        self.failed |= run.error not in {None, STOPPED}
        self._tell(told(run))
        return run.error is None


def told(run: Run) -> str:
    """An operation that has ended, in a line: how fast, what was recovered, the verdict."""
    words = f"{run.algorithm} {run.iteration}, {format_size(run.bytes_per_rank)}"
    if run.hosts:
        words = f"{words}, among {run.ranks} hosts"
    if run.error == STOPPED:
        return f"{words}: {STOPPED}"
    if run.error is not None:
        return f"{words}: FAILED: {run.error}"
    assert run.seconds is not None
    assert run.limit_ratio is not None
    return (
        f"{words}: {run.seconds * 1e3:.0f} ms, {run.limit_ratio:.3f} of the limit, {run.packets.recovered} recovered, "
        f"verified, {run.fidelity.verdict}"
    )
