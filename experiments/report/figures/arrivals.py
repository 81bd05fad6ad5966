"""Arrival order and recovery over time of one rank, from the capture of its host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.analysis.context import Context
from experiments.analysis.packets import I64
from experiments.analysis.reads import recoveries
from experiments.analysis.trace import Trace, read_trace
from experiments.report import style
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, NothingToShow, Plate, Table, Value
from experiments.wording import tell_field

_CAPTION = (
    "The last multicast operation of a run as its captured host saw it: above, each chunk at the time at which it "
    "came, by multicast or by READ from a neighbour; below, how much of what others sent was complete. A chunk that "
    "came by multicast and was recovered all the same was lost behind the link, as injected loss is."
)
_MISSING = "no result folder holds the capture of a host; run with --capture h1, or capture: h1 in a sweep"
_MOST = 4
_CHUNK, _READ = "#0072B2", "#D55E00"


@dataclass(frozen=True)
class Arrivals:
    """What came to a host in one operation: chunks and when, in ns from the first, by multicast and by READ."""

    title: str
    verdict: str
    host: str
    expected: int
    multicast: tuple[I64, I64]
    recovered: tuple[I64, I64]

    @property
    def complete(self) -> tuple[I64, I64]:
        """Each chunk once and when it was in place: recovered ones when they were recovered."""
        chunks, times = (np.concatenate(both) for both in zip(self.recovered, self.multicast, strict=True))
        found, first = np.unique(chunks, return_index=True)
        return found, times[first]


def _make(evidence: Evidence) -> list[Plate]:
    shown = [arrivals for arrivals in _found(evidence) if len(arrivals.multicast[0])]
    if not shown:
        raise NothingToShow(_MISSING)
    with style.in_style():
        columns = min(len(shown), 2)
        figure, axes = style.grid_of_axes(2 * len(shown), inches=(4.6, 2.3), across=columns)
        for number, arrivals in enumerate(shown):
            row, column = divmod(number, columns)
            upper, lower = (axes[(2 * row + down) * columns + column] for down in (0, 1))
            _draw(upper, lower, arrivals)
        handles = [
            Line2D([], [], color=_CHUNK, marker=".", linestyle="", label="came by multicast"),
            Line2D([], [], color=_READ, marker="x", linestyle="", label="recovered by READ"),
            Line2D([], [], color="black", label="complete"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return [Plate("arrivals", "Arrival order and recovery of one rank", _CAPTION, _table(shown), figure)]


def _found(evidence: Evidence) -> Iterator[Arrivals]:
    """One for each result folder with the capture of a host; most loss first."""
    last = {operation.folder: operation for operation in evidence.counting}
    ordered = sorted(last.values(), key=lambda operation: (-operation.scenario.loss, str(operation.folder)))
    captured = [(operation, path) for operation in ordered for path in _captures(operation)[:1]]
    for operation, path in captured[:_MOST]:
        yield read(operation, path)


def _captures(operation: Operation) -> list[Path]:
    """The captures of hosts in a result folder."""
    hosts = operation.scenario.fabric.host
    return [path for path in sorted((operation.folder / "captures").glob("*.pcapng")) if path.stem in hosts]


def read(operation: Operation, path: Path) -> Arrivals:
    """What the capture of a host tells of the last multicast operation in it."""
    trace = read_trace([path], Context.of(operation.summary))
    host = next(number for number, entry in enumerate(operation.scenario.fabric.hosts) if entry.name == path.stem)
    chunks = trace.chunks[trace.chunks["src"] != host]
    ops = np.unique(chunks["op"])
    op = int(ops[-1]) if len(ops) else 0
    its = chunks[chunks["op"] == op]
    begin = int(its["time_ns"][0]) if len(its) else 0
    blocks = trace.context.blocks(op) if trace.context and len(ops) else None
    count = blocks.layout.chunks_per_block * sum(root != host for root in blocks.roots) if blocks else len(its)
    return Arrivals(
        ", ".join(
            [operation.scenario.topology, tell_field("loss", operation.scenario.loss), f"operation {op} of the run"]
        ),
        operation.verdict,
        path.stem,
        count,
        (its["chunk"].astype(np.int64), its["time_ns"] - begin),
        _recovered(trace, op, host, begin),
    )


def _recovered(trace: Trace, op: int, host: int, begin: int) -> tuple[I64, I64]:
    answers = [
        recovery.answers
        for recovery in recoveries(trace)
        if (recovery.op, recovery.requester) == (op, host) and recovery.asked is not None
    ]
    if not answers:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    frames = np.concatenate(answers)
    return frames["chunk"].astype(np.int64), frames["time_ns"] - begin


def _draw(upper: Axes, lower: Axes, arrivals: Arrivals) -> None:
    for (chunks, times), marker, colour in ((arrivals.multicast, ".", _CHUNK), (arrivals.recovered, "x", _READ)):
        size = 2.0 if marker == "." else 4.0
        upper.plot(times / 1e6, chunks, marker, markersize=size, color=colour, rasterized=len(chunks) > 2000)
    upper.set_title(style.titled(f"{arrivals.host}: {arrivals.title}", arrivals.verdict, 52))
    upper.set_ylabel("chunk (PSN)")
    in_place = np.sort(arrivals.complete[1])
    lower.step(
        in_place / 1e6, np.arange(1, len(in_place) + 1) * 100 / max(1, arrivals.expected), where="post", color="black"
    )
    lower.set_xlim(upper.get_xlim())
    lower.set_ylim(0, 105)
    lower.set_ylabel("complete (%)")
    lower.set_xlabel("time since the first chunk (ms)")


def _table(shown: list[Arrivals]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (arrivals.host, arrivals.title, int(chunk), int(time) / 1e6, how)
        for arrivals in shown
        for how, (chunks, times) in (("multicast", arrivals.multicast), ("READ", arrivals.recovered))
        for chunk, time in zip(chunks, times, strict=True)
    ]
    return Table(("host", "operation", "chunk", "time (ms)", "by"), rows)


FIGURE = Figure("arrivals", "Arrival order and recovery of one rank", 50, _make)
