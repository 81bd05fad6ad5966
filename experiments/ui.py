"""What a user sees while a run is on, and the table at its end. Plain lines where the output is no terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TextIO

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from experiments import theory
from experiments.results import Fidelity, Run, Summary
from experiments.units import format_rate, format_size
from experiments.wording import tell_fault


class Progress(Protocol):
    """What a run tells: one phase after the other, how far each is, and a word on what is going on in it."""

    def phase(self, name: str, total: int | None) -> None:
        """A phase begins."""

    def advance(self, done: int, total: int) -> None:
        """The phase is so far."""

    def note(self, text: str) -> None:
        """A word."""

    def close(self) -> None:
        """All is over."""


class PlainProgress:
    """A line for each phase."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def phase(self, name: str, total: int | None) -> None:
        """Print it."""
        del total
        self._stream.write(f"{name} ...\n")
        self._stream.flush()

    def advance(self, done: int, total: int) -> None:
        """Nothing: a pipe is no place for a moving line."""

    def note(self, text: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LiveProgress:
    """A bar for each phase, with the time that is left at the pace so far."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
        )
        self._task: TaskID | None = None
        self._bars.start()

    def phase(self, name: str, total: int | None) -> None:
        """The bar before is finished."""
        self._finish()
        self._task = self._bars.add_task(name, total=total, note="")

    def advance(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        """Beside the bar."""
        if self._task is not None:
            self._bars.update(self._task, note=text)

    def close(self) -> None:
        """Leave the bars as they are."""
        self._finish()
        self._bars.stop()

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bars.tasks[self._task].total or 1
            self._bars.update(self._task, completed=total, total=total, note="")


def make_progress(stream: TextIO, *, plain: bool) -> Progress:
    """Bars on a terminal that wants them, else lines (also for ``--plain`` and ``TERM=dumb``)."""
    if plain or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return PlainProgress(stream)
    return LiveProgress(Console(file=stream))


def summary_table(summary: Summary) -> Table:
    """The columns that the field knows (nccl-tests), a row for each operation; scaled values stand in their own.

    Without ``scale`` it fits into 80 columns. Nothing in it is ever cut short.
    """
    scenario = summary.scenario
    scaled = scenario.scale != 1
    table = Table(
        title=f"{scenario.topology}, {scenario.ranks} ranks, links of {format_rate(scenario.link_rate_bps)}",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
    )
    table.add_column("algorithm", no_wrap=True)
    for name in ("size", "time\n(ms)", "algbw\n(MB/s)", "busbw\n(MB/s)", "of\nlimit", "#wrong", "recovered"):
        table.add_column(name, justify="right", no_wrap=True)
    if scaled:
        for name in ("algbw", "busbw"):
            table.add_column(f"{name}\n×{scenario.scale:g}\n(GB/s)", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for run in summary.runs:
        table.add_row(*_row(run, summary, scaled=scaled))
    for entry in summary.skipped:
        table.add_row(entry.algorithm, *["-"] * (len(table.columns) - 2), "skipped")
    return table


def _row(run: Run, summary: Summary, *, scaled: bool) -> list[str]:
    kind = next(c.kind for c in summary.scenario.collectives if c.name == run.algorithm)
    seconds = run.seconds or 0.0
    alg = theory.algbw(kind, run.ranks, run.bytes_per_rank, seconds)
    bus = theory.busbw(kind, run.ranks, run.bytes_per_rank, seconds)
    scale = summary.scenario.scale
    return [
        run.algorithm,
        format_size(run.bytes_per_rank),
        f"{seconds * 1e3:.1f}" if run.seconds is not None else "-",
        f"{alg / 1e6:.2f}",
        f"{bus / 1e6:.2f}",
        f"{run.limit_ratio:.3f}" if run.limit_ratio is not None else "-",
        str(run.wrong_bytes),
        str(run.packets.recovered),
        *([f"{alg * scale / 1e9:.2f}", f"{bus * scale / 1e9:.2f}"] if scaled else []),
        _status(run),
    ]


def _status(run: Run) -> str:
    """Whether its bytes are right, and where its time is not to be trusted, that."""
    if not run.verified:
        return "FAILED"
    return run.fidelity.verdict if run.fidelity.verdict in ("overloaded", "invalid") else "verified"


def fidelity_lines(fidelity: Fidelity) -> list[str]:
    """The verdict on the emulation, a line for each reason."""
    if not fidelity.reasons:
        return [f"fidelity: {fidelity.verdict}"]
    return [f"fidelity: {fidelity.verdict}: {reason}" for reason in fidelity.reasons]


def probe_lines(summary: Summary) -> list[str]:
    """What links carried alone before the runs, in one line; none where none was tried."""
    if not summary.probe_bps:
        return []
    scenario, carried = summary.scenario, summary.probe_bps.values()
    rate = scenario.link_rate_bps
    tried = f"{len(carried)} of {len(scenario.fabric.directed_links)} tried"
    return [f"links: carry {min(carried) / rate:.3f} to {max(carried) / rate:.3f} of {format_rate(rate)} ({tried})"]


def print_summary(summary: Summary, folder: Path, *, plain: bool) -> None:
    """The table, and where everything is."""
    lines = []
    for run in summary.runs:
        measured, expected = sum(run.link_bytes.values()), sum(run.link_bytes_theory.values())
        if expected:
            share = f"theory {expected} ({measured / expected:.4f})"
            lines.append(f"{run.algorithm}: {measured} bytes on all links, {share}")
        if run.port_mismatches:
            first, count = run.port_mismatches[0], len(run.port_mismatches)
            says = ", ".join(f"{who} {value}" for who, value in first.counted.items())
            lines.append(f"{run.algorithm}: ports' counters disagree ({count}): {first.link} {first.quantity}: {says}")
    lines += [f"{entry.algorithm}: skipped, {entry.reason}" for entry in summary.skipped]
    lines += [tell_fault(row) for row in summary.faults]
    lines += [*probe_lines(summary), *fidelity_lines(summary.fidelity)]
    print_table(summary_table(summary), [*lines, f"results in {folder}"], plain=plain)


def print_table(table: Table, lines: Iterable[str], *, plain: bool) -> None:
    """A table, and lines below it. A narrow terminal breaks them, but no figure is lost."""
    console = Console(no_color=plain or None, width=None if Console().is_terminal else 140)
    whole = Measurement.get(console, console.options.update(max_width=1000), table).maximum
    console.width = max(console.width, whole)
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
