"""A sweep at work: one run after the other, each in a sandbox of its own, each written down before the next."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from experiments import launch
from experiments.errors import EXIT_INTERRUPTED, EXIT_OK, ExperimentFailed
from experiments.results import Summary
from experiments.sweep.folder import SweepFolder, outcome, summary_in
from experiments.sweep.grid import Grid, Point
from experiments.sweep.journal import Record
from experiments.sweep.pace import Pace
from experiments.sweep.view import View
from experiments.ui import Progress


def work(grid: Grid, folder: SweepFolder, view: View, *, retry_failed: bool = False) -> int:
    """Make every point of ``grid`` that has no record yet; the exit code, 130 if the sweep was stopped.

    A point that fails is written down as failed, and the sweep goes on; with ``retry_failed`` those of earlier calls
    are made again. Raises :class:`ExperimentFailed` at the end if any point of the grid has failed.
    """
    records = folder.journal.records
    found = folder.mend({str(point.scenario.name): point for point in grid.points})
    again = {key for key, record in records.items() if retry_failed and record.status == "failed"}
    pending = [point for point in grid.points if point.key not in records or point.key in again]
    view.say(_opening(grid, len(pending), found))
    pace = _pace(grid, folder)
    for number, point in enumerate(pending):
        over = len(grid.points) - len(pending) + number

        def progress(
            point: Point = point, over: int = over, left: float | None = pace.left(pending[number:])
        ) -> Progress:
            return view.progress(point, over, left)

        record, summary = _make(point, folder, progress)
        if record is None:
            view.say(f"stopped with {len(pending) - number} points to do; the same command goes on with them")
            return EXIT_INTERRUPTED
        folder.journal.append(record)
        if record.seconds is not None:
            pace.took(point, record.seconds)
        view.over(point, record, summary, over + 1, pace.left(pending[number + 1 :]))
    view.say(f"results in {folder.path}; figures and tables: treecast report {folder.path}")
    failed = [point for point in grid.points if records[point.key].status == "failed"]
    if failed:
        first = failed[0]
        raise ExperimentFailed(
            f"sweep {grid.name}: {len(failed)} of {len(grid.points)} points failed; "
            f"the first: {first.words}: {records[first.key].error}"
        )
    return EXIT_OK


def _opening(grid: Grid, pending: int, found: int) -> str:
    over = len(grid.points) - pending
    words = f"sweep {grid.name}: {len(grid.points)} points, {over} over, {pending} to do"
    return f"{words} ({found} had ended without a record)" if found else words


def _pace(grid: Grid, folder: SweepFolder) -> Pace:
    pace = Pace()
    for point in grid.points:
        record = folder.journal.records.get(point.key)
        if record is not None and record.seconds is not None:
            pace.took(point, record.seconds)
    return pace


def _make(point: Point, folder: SweepFolder, progress: Callable[[], Progress]) -> tuple[Record | None, Summary | None]:
    """Run a point; no record if it was stopped."""
    begun = time.monotonic()
    launched = launch.launch(point.scenario, folder.runs, progress, lambda summary, _: 0 if summary.verified else 1)
    seconds = round(time.monotonic() - begun, 3)
    if launched.code == EXIT_INTERRUPTED:
        shutil.rmtree(launched.folder, ignore_errors=True)
        return None, None
    where = folder.relative(launched.folder)
    summary = summary_in(launched.folder)
    if summary is not None:
        return outcome(point, summary, where, seconds), summary
    error = _why(launched.folder) or f"the run ended with exit code {launched.code}"
    kept = where if launched.folder.exists() else None
    return Record(key=point.key, status="failed", folder=kept, seconds=seconds, error=error), None


def _why(folder: Path) -> str:
    """The line that a run without results has left."""
    try:
        return (folder / launch.ERROR).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
