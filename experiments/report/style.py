"""How every figure looks: colours that the colour-blind tell apart, markers for fidelity, axes with units.

Colours are those of Okabe and Ito (2008), and lines differ in their dashes as well. Nothing of a file depends on when
or where it was made, so that the same results give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from experiments.report.evidence import Operation
from experiments.report.groups import Cell, Panel
from experiments.units import format_size

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B0A000")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
GREY = "#888888"
RAMP = "viridis"
"""Of ordered values."""

MARKERS: dict[str, dict[str, Any]] = {
    "valid": {"marker": "o", "markersize": 5.5},
    "unknown": {"marker": "o", "markersize": 5.5, "markerfacecolor": "white"},
    "overloaded": {"marker": "X", "markersize": 8.5, "markeredgecolor": "black", "markeredgewidth": 0.7},
}
OTHER_MARKER: dict[str, Any] = {"marker": "s", "markersize": 5.5}
FIDELITY_WORDS = {
    "valid": "valid: the machine kept up",
    "unknown": "fidelity not assessed",
    "overloaded": "overloaded: the machine did not keep up",
}
SHORT_FIDELITY = {"unknown": "not assessed"}
"""What is written behind a title, where it is not the verdict itself."""

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.4,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "svg.hashsalt": "treecast",
    "svg.fonttype": "path",
    "path.simplify": True,
}
MOST_PANELS = 6
ACROSS = 3
PANEL_INCHES = (3.5, 2.7)


@contextmanager
def in_style() -> Iterator[None]:
    """Everything drawn inside looks as it should."""
    with mpl.rc_context(SETTINGS):  # type: ignore[arg-type]  # the names are known to Matplotlib
        yield


def grid_of_axes(
    count: int, *, inches: tuple[float, float] = PANEL_INCHES, across: int = ACROSS, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` axes, row by row."""
    columns = 2 if count == 4 else min(count, across)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(inches[0] * columns, 4.8), inches[1] * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).flatten().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def label_y_once(axes: Iterable[Axes]) -> None:
    """Only the first of each row of axes that share y says what it is."""
    for one in axes:
        place = one.get_subplotspec()
        if place is not None and not place.is_first_col():
            one.set_ylabel("")


class Lines:
    """Which colour and dashes each algorithm has, the same in all figures of a report."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        kinds: dict[str, list[str]] = {}
        for name, kind in sorted({(operation.run.algorithm, operation.kind) for operation in operations}):
            kinds.setdefault(kind, []).append(name)
        self._number = {
            name: number
            for names in kinds.values()
            for number, name in enumerate(sorted(names, key=lambda name: (not name.startswith("mcast"), name)))
        }

    def colour(self, algorithm: str) -> str:
        """Of an algorithm; multicast is the first of its kind."""
        return COLOURS[self._number[algorithm] % len(COLOURS)]

    def dashes(self, algorithm: str) -> Any:
        """Of an algorithm's line."""
        return DASHES[self._number[algorithm] % len(DASHES)]


def plot_cells(axes: Axes, panel: Panel, value: Callable[[Operation], float], lines: Lines) -> None:
    """Each algorithm's medians, joined, with their intervals, in markers that tell fidelity; all operations as dots."""
    for algorithm, cells in panel.series.items():
        colour = lines.colour(algorithm)
        estimates = [cell.estimate(value) for cell in cells]
        places = [cell.x for cell in cells]
        axes.plot(places, [e.median for e in estimates], color=colour, linestyle=lines.dashes(algorithm), zorder=2)
        axes.vlines(places, [e.low for e in estimates], [e.high for e in estimates], color=colour, linewidth=2.4,
                    alpha=0.45, zorder=1)  # fmt: skip
        for cell, found in zip(cells, estimates, strict=True):
            values = [value(operation) for operation in cell.operations]
            axes.plot([cell.x] * len(values), values, ".", color=colour, markersize=2.5, alpha=0.5, zorder=3)
            axes.plot([cell.x], [found.median], color=colour, zorder=4, linestyle="", **marker(cell))


def marker(cell: Cell) -> dict[str, Any]:
    """How a cell's fidelity looks."""
    return MARKERS.get(cell.verdict, OTHER_MARKER)


def legend(figure: Figure, shown: Sequence[Panel], lines: Lines, extra: Sequence[Line2D] = ()) -> None:
    """Below the axes: the algorithms, the kinds of fidelity that occur, and ``extra``."""
    algorithms = list(dict.fromkeys(name for panel in shown for name in panel.series))
    verdicts = {cell.verdict for panel in shown for cells in panel.series.values() for cell in cells}
    handles = [
        *(Line2D([], [], color=lines.colour(name), linestyle=lines.dashes(name), label=name) for name in algorithms),
        *extra,
        *(
            Line2D([], [], color=GREY, linestyle="", label=FIDELITY_WORDS.get(verdict, verdict),
                   **MARKERS.get(verdict, OTHER_MARKER))
            for verdict in sorted(verdicts)
        ),
    ]  # fmt: skip
    width = max(len(str(handle.get_label())) for handle in handles)
    across = max(1, min(len(handles), int(figure.get_figwidth() * 15 / (width + 7))))
    figure.legend(handles=handles, loc="outside lower center", ncols=across)


def titled(title: str, verdict: str, width: int = 40) -> str:
    """A title over a single operation, with its fidelity."""
    return broken(f"{title}, {SHORT_FIDELITY.get(verdict, verdict)}", width)


def few_ticks(axes: Axes, most: int = 5) -> None:
    """An x axis whose labels do not run into each other."""
    axes.xaxis.set_major_locator(MaxNLocator(most))


def size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    """A logarithmic x axis of bytes, labelled in binary units where there are values."""
    axes.set_xscale("symlog" if min(sizes) <= 0 else "log", base=2)
    _ticks(axes, _thinned(sorted(set(sizes))), lambda value: format_size(round(value)))
    axes.tick_params(axis="x", rotation=30 if len(set(sizes)) > 5 else 0)
    axes.set_xlabel("bytes per rank")


def count_axis(axes: Axes, counts: Sequence[float], label: str) -> None:
    """A logarithmic x axis of whole numbers, labelled where there are values."""
    axes.set_xscale("log", base=2)
    _ticks(axes, sorted(set(counts)), lambda value: f"{value:g}")
    axes.set_xlabel(label)


def _ticks(axes: Axes, places: Sequence[float], words: Callable[[float], str]) -> None:
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _thinned(places: Sequence[float], most: int = 8) -> Sequence[float]:
    step = math.ceil(len(places) / most)
    return places[:: step or 1]


def broken(title: str, width: int = 40) -> str:
    """A title in lines that fit over a panel, broken behind commas."""
    lines = [""]
    for part in title.split(", "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines[-1] += ","
            lines.append(part)
        else:
            lines[-1] += f", {part}" if lines[-1] else part
    return "\n".join(lines)
