"""One operation as its captures saw it: which chunk came when, what was recovered, and how full the link was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from endpoints.core.packets import Opcode
from experiments.analysis.context import host_name
from experiments.analysis.frames import UD, Frames
from experiments.analysis.packets import IN, OUT
from experiments.analysis.reads import Recovery, recoveries
from experiments.analysis.streams import bin_width, rates
from experiments.analysis.trace import Trace
from experiments.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TREES = ("#0072b2", "#009e73", "#56b4e9", "#cc79a7", "#e69f00")
"""Colours of the trees, in turn; with that of recoveries those of Okabe and Ito, which the colour-blind tell apart."""
RECOVERED = "#d55e00"
MULTICAST = "#6c8ebf"
OTHER = "#999999"
MOST = 8
"""Captures that one figure holds, the first ones; more could not be read."""
_PANEL = (4.6, 5.4)
_MARGIN_NS = 5_000_000


def draw(trace: Trace, path: Path, op: int | None = None) -> None:
    """Draw operation ``op``, the last by default; :class:`UserError` if it is not in the captures."""
    known = np.unique(trace.chunks["op"]).tolist()
    if not known:
        raise UserError(f"figure {str(path)!r}: no multicast chunk is in the captures")
    op = known[-1] if op is None else op
    if op not in known:
        raise UserError(f"operation {op}: the captures hold {', '.join(map(str, known))}")
    with mpl.rc_context({"svg.hashsalt": "treecast", "font.size": 9}):
        figure = _figure(trace, op)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _figure(trace: Trace, op: int) -> Figure:
    points = [at for at in range(len(trace.points)) if (trace.chunks["point"] == at).any()][:MOST]
    recovered = [recovery for recovery in recoveries(trace) if recovery.op == op]
    columns = min(len(points), 4)
    lines = -(-len(points) // columns)
    figure = Figure(figsize=(0.8 + _PANEL[0] * columns, 0.8 + _PANEL[1] * lines), layout="constrained")
    figure.suptitle(f"Operation {op}: multicast chunks in the order of arrival, and the rate of the link")
    heights = [3, 1] * lines
    axes = figure.subplots(2 * lines, columns, sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    begin, end = _span(trace, op, recovered)
    for place, at in enumerate(points):
        line, column = divmod(place, columns)
        upper, lower = axes[2 * line][column], axes[2 * line + 1][column]
        _arrivals(upper, trace, at, op, begin, recovered)
        _rate(lower, trace, at, begin, end)
        lower.set_xlabel("time (ms)")
        if column == 0:
            upper.set_ylabel("PSN (chunk number)")
            lower.set_ylabel("Mbit/s")
    for place in range(len(points), lines * columns):
        line, column = divmod(place, columns)
        axes[2 * line][column].remove()
        axes[2 * line + 1][column].remove()
    axes[0][0].set_xlim(0, (end - begin) / 1e6)
    handles: dict[str, Artist] = {}
    for one in figure.axes:
        handles.update(zip(*reversed(one.get_legend_handles_labels()), strict=True))
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=6, frameon=False)
    return figure


def _span(trace: Trace, op: int, recovered: Sequence[Recovery]) -> tuple[int, int]:
    its = trace.chunks[trace.chunks["op"] == op]["time_ns"]
    ends = [int(recovery.answers["time_ns"][-1]) for recovery in recovered if len(recovery.answers)]
    return int(its[0]) - _MARGIN_NS, max(int(its[-1]), *ends, 0) + _MARGIN_NS


def _arrivals(axes: Axes, trace: Trace, at: int, op: int, begin: int, recovered: Sequence[Recovery]) -> None:
    point, chunks = trace.points[at], trace.chunks
    chunks = chunks[(chunks["point"] == at) & (chunks["op"] == op)]
    own = "" if point.host is None else f", {host_name(point.host)}'s link"
    axes.set_title(f"{point.name}{own if point.name != host_name(point.host or 0) else ''}")
    for tree in np.unique(chunks["tree"]).tolist():
        its = chunks[chunks["tree"] == tree]
        _dots(axes, its, begin, ".", TREES[tree % len(TREES)], f"multicast, tree {tree}")
    for recovery in recovered:
        if point.host in {recovery.requester, recovery.supplier} and recovery.asked is not None:
            came = recovery.requester == point.host
            label = "recovered by READ" if came else "supplied by READ"
            _dots(axes, recovery.answers, begin, "x" if came else "+", RECOVERED if came else OTHER, label)
    _borders(axes, trace, op)


def _dots(axes: Axes, frames: Frames, begin: int, marker: str, colour: str, label: str) -> None:
    times = (frames["time_ns"] - begin) / 1e6
    size = 3.0 if marker == "." else 5.0
    axes.plot(times, frames["chunk"], marker, ms=size, color=colour, label=label, rasterized=len(frames) > 2000)


def _borders(axes: Axes, trace: Trace, op: int) -> None:
    """A line between the blocks of the roots, whose names stand at the right."""
    blocks = None if trace.context is None else trace.context.blocks(op)
    if blocks is None or len(blocks.roots) > 32:
        return
    size = blocks.layout.chunks_per_block
    for number, root in enumerate(blocks.roots):
        axes.axhline(number * size, color="#dddddd", lw=0.6, zorder=0)
        axes.annotate(
            host_name(root), (1.0, (number + 0.5) * size), xycoords=("axes fraction", "data"), xytext=(3, 0),
            textcoords="offset points", va="center", fontsize=7, color="#666666",
        )  # fmt: skip
    margin = max(1, len(blocks.roots) * size // 64)
    axes.set_ylim(-margin, len(blocks.roots) * size + margin)


def _rate(axes: Axes, trace: Trace, at: int, begin: int, end: int) -> None:
    """Bits per second on the wire over time: multicast and READ answers, by direction."""
    width = bin_width(end - begin)
    frames = trace.frames
    frames = frames[(frames["point"] == at) & (frames["time_ns"] >= begin) & (frames["time_ns"] <= end)]
    opcode = frames["opcode"]
    answer = (opcode >= Opcode.RC_READ_RESPONSE_FIRST) & (opcode <= Opcode.RC_READ_RESPONSE_ONLY)
    times = np.arange((end - begin) // width + 2) * width / 1e6
    ways = ((IN, 1, "in"), (OUT, -1, "out")) if (frames["direction"] >= 0).all() else ((None, 1, "both ways"),)
    for way, sign, word in ways:
        its = np.ones(len(frames), np.bool_) if way is None else frames["direction"] == way
        for kind, colour, what in (
            (opcode == UD, MULTICAST, "rate: multicast"),
            (answer, RECOVERED, "rate: READ data"),
        ):
            mbps = sign * rates(frames[its & kind], begin, end, width) / 1e6
            if mbps.any():
                axes.stairs(mbps, times, fill=True, color=colour, alpha=0.45, label=what)
        total = sign * rates(frames[its], begin, end, width) / 1e6
        axes.stairs(total, times, color="#333333", lw=0.8)
        axes.annotate(
            word, (0.01, 0.96 if sign > 0 else 0.04), xycoords="axes fraction", fontsize=7,
            va="top" if sign > 0 else "bottom", color="#333333",
        )  # fmt: skip
    axes.axhline(0, color="#333333", lw=0.6)
