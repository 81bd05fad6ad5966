"""What a user sees of a sweep: a line for each point that is over, and on a terminal bars while one is on.

The bars are drawn by the run's own process, in its sandbox: the sweep's process forks runs and has no threads.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars

from experiments.results import Summary
from experiments.sweep.grid import Point
from experiments.sweep.journal import Record
from experiments.ui import Progress
from experiments.wording import tell_duration


class Quiet:
    """A run that shows nothing of itself."""

    def phase(self, name: str, total: int | None) -> None:
        """Nothing."""

    def advance(self, done: int, total: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class TwoBars:
    """How far the sweep is and how long it will take, and below it what the run is at; both vanish with the run."""

    def __init__(self, console: Console, point: Point, over: int, total: int, left: float | None) -> None:
        self._left = left
        self._begun = time.monotonic()
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
            transient=True,
        )
        self._sweep = self._bars.add_task("sweep", total=total, completed=over, note="")
        self._run = self._bars.add_task("", total=None, note=point.words)
        self._bars.start()

    def phase(self, name: str, total: int | None) -> None:
        """The run's bar begins anew."""
        self._bars.reset(self._run, total=total, description=name)
        self._tick()

    def advance(self, done: int, total: int) -> None:
        """Move the run's bar."""
        self._bars.update(self._run, completed=done, total=total)
        self._tick()

    def note(self, text: str) -> None:
        """Nothing: the place is taken by what the point is."""

    def close(self) -> None:
        """Remove the bars."""
        self._bars.stop()

    def _tick(self) -> None:
        if self._left is not None:
            left = self._left - (time.monotonic() - self._begun)
            self._bars.update(self._sweep, note=f"about {tell_duration(left)} left")


class View:
    """Tells of a sweep of ``total`` points."""

    def __init__(self, stream: TextIO, total: int, *, live: bool) -> None:
        self._stream = stream
        self._total = total
        self._live = live

    def say(self, line: str) -> None:
        """A line of its own."""
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def progress(self, point: Point, over: int, left: float | None) -> Progress:
        """What a run tells its progress to; called in the run's process."""
        if not self._live:
            return Quiet()
        return TwoBars(Console(file=self._stream), point, over, self._total, left)

    def over(self, point: Point, record: Record, summary: Summary | None, over: int, left: float | None) -> None:
        """A point is over; ``over`` points are in all."""
        words = [told(record, summary)]
        if record.seconds is not None:
            words.append(f"{record.seconds:.1f} s")
        if left:
            words.append(f"about {tell_duration(left)} left")
        self.say(f"{over:>{len(str(self._total))}}/{self._total}  {point.words}: {', '.join(words)}")


def told(record: Record, summary: Summary | None) -> str:
    """How a point went."""
    if record.status == "failed" or summary is None:
        return f"FAILED: {record.error}"
    ratios: dict[str, list[float]] = {}
    for run in summary.runs:
        ratios.setdefault(run.algorithm, []).append(run.limit_ratio or 0.0)
    parts = [f"{name} {median(found):.3f}" for name, found in ratios.items()]
    if len(parts) == 1:
        parts = [parts[0].rpartition(" ")[2]]
    words = f"{', '.join(parts)} of the limit"
    return f"{words} (overloaded)" if summary.fidelity.verdict == "overloaded" else words
