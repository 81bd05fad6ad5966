"""Phases per rank: how long each rank was in barrier, multicast, recovery and handshake."""

from __future__ import annotations

from statistics import median

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from experiments.judge import PHASES
from experiments.report import style
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, NothingToShow, Plate, Table, Value
from experiments.report.groups import alike, typical

_COLOURS = {
    "barrier": "#E69F00",
    "multicast": "#0072B2",
    "transfer": "#56B4E9",
    "recovery": "#D55E00",
    "handshake": "#009E73",
}
_OTHERS = ("#CC79A7", "#B0A000", "#000000", "#888888")
_CAPTION = (
    "Seconds of each rank in each phase, as measured, of the operation whose time is the median of its repetitions. "
    "A rank that finished early waits in its last phase for nobody; bars end when it was done."
)


def _make(evidence: Evidence) -> list[Plate]:
    telling = [operation for operation in evidence.counting if any(map(any, operation.run.phases.values()))]
    if not telling:
        raise NothingToShow("no operation has times by phase")
    groups = alike(sorted(telling, key=_largest_first), evidence.varying)
    shown = {title: typical(group) for title, group in list(groups.items())[: style.MOST_PANELS]}
    names = [name for name in (*PHASES, *_further(telling)) if any(_has(o, name) for o in shown.values())]
    colours = {**_COLOURS, **dict(zip(_further(telling), _OTHERS, strict=False))}
    with style.in_style():
        height = 1.1 + 0.09 * max(operation.run.ranks for operation in shown.values())
        figure, axes = style.grid_of_axes(len(shown), inches=(style.PANEL_INCHES[0], min(height, 6.0)))
        for one, (title, operation) in zip(axes, shown.items(), strict=True):
            begun = [0.0] * operation.run.ranks
            for name in names:
                spent = operation.run.phases.get(name, [0.0] * operation.run.ranks)
                one.barh(range(len(spent)), spent, left=begun, color=colours[name], height=0.8, linewidth=0)
                begun = [at + more for at, more in zip(begun, spent, strict=True)]
            one.invert_yaxis()
            one.grid(visible=False, axis="y")
            one.yaxis.set_major_locator(MaxNLocator(8, integer=True))
            style.few_ticks(one)
            one.set_title(style.titled(title, operation.verdict))
            one.set_xlabel("time (s)")
            one.set_ylabel("rank")
        handles = [Patch(color=colours[name], label=name) for name in names]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    more = len(groups) - len(shown)
    caption = _CAPTION + (f" {more} more settings are in the table." if more else "")
    return [Plate("phases", "Phases per rank", caption, _table(groups), figure)]


def _largest_first(operation: Operation) -> tuple[float, ...]:
    """Most bytes first, then least loss."""
    return (-operation.run.bytes_per_rank, operation.scenario.loss)


def _has(operation: Operation, phase: str) -> bool:
    return any(operation.run.phases.get(phase, ()))


def _further(operations: list[Operation]) -> tuple[str, ...]:
    """Phases that are none of multicast's."""
    return tuple(sorted({name for operation in operations for name in operation.run.phases} - set(PHASES)))


def _table(groups: dict[str, list[Operation]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for title, operations in groups.items():
        total = sum(sum(map(sum, operation.run.phases.values())) for operation in operations) or 1.0
        for phase in sorted({name for operation in operations for name in operation.run.phases}, key=_order):
            spent = [seconds for operation in operations for seconds in operation.run.phases.get(phase, ())]
            rows.append((title, phase, len(operations), median(spent), max(spent), sum(spent) / total))
    return Table(("setting", "phase", "operations", "median of ranks (s)", "longest (s)", "part of all time"), rows)


def _order(phase: str) -> tuple[int, str]:
    return (PHASES.index(phase) if phase in PHASES else len(PHASES), phase)


FIGURE = Figure("phases", "Phases per rank", 40, _make)
