"""Figures of a quantity over an axis: one panel per condition, medians with intervals, one plate per scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.report import style
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import NothingToShow, Plate, Table, Value
from experiments.report.groups import Panel, panels, with_a_choice
from experiments.stats import METHOD


@dataclass(frozen=True)
class Curve:
    """What goes into such a figure.

    ``x`` and ``value`` read an operation; ``own`` are the fields that the axis shows, ``x_name`` and ``unit`` the
    table's words for both. ``decorate`` labels the axes of a panel and draws what its values are compared with.
    """

    name: str
    title: str
    caption: str
    x: Callable[[Operation], float]
    own: tuple[str, ...]
    x_name: str
    value: Callable[[Operation], float]
    unit: str
    decorate: Callable[[Axes, Panel], None]
    extra: tuple[Line2D, ...] = ()
    share_y: bool = True


def plate(evidence: Evidence, curve: Curve, operations: Sequence[Operation], missing: str) -> Plate:
    """Draw ``curve`` for ``operations``; :class:`NothingToShow` with ``missing`` where x is the same everywhere."""
    found = with_a_choice(panels(evidence, curve.x, curve.own, operations))
    if not found:
        raise NothingToShow(missing)
    shown = found[: style.MOST_PANELS]
    lines = style.Lines(evidence.operations)
    with style.in_style():
        figure, axes = style.grid_of_axes(len(shown), share_y=curve.share_y)
        for one, panel in zip(axes, shown, strict=True):
            style.plot_cells(one, panel, curve.value, lines)
            one.set_title(style.broken(panel.title))
            curve.decorate(one, panel)
        if curve.share_y:
            style.label_y_once(axes)
        style.legend(figure, shown, lines, curve.extra)
    words = [curve.caption, METHOD]
    if len(found) > len(shown):
        words.append(f"{len(found) - len(shown)} more conditions are in the table.")
    return Plate(curve.name, curve.title, " ".join(words), table(found, curve), figure)


def plates(evidence: Evidence, measured: Curve, scaled: Curve, missing: str) -> list[Plate]:
    """``measured`` for all operations, and ``scaled`` for those on links that stand for faster ones, if any."""
    made = [plate(evidence, measured, evidence.counting, missing)]
    fast = [operation for operation in evidence.counting if operation.scenario.scale != 1]
    return [*made, plate(evidence, scaled, fast, missing)] if fast else made


def table(found: Sequence[Panel], curve: Curve) -> Table:
    """Every point of every panel."""
    rows: list[tuple[Value, ...]] = []
    for panel in found:
        for algorithm, cells in panel.series.items():
            for cell in cells:
                got = cell.estimate(curve.value)
                rows.append(
                    (
                        panel.title,
                        algorithm,
                        cell.x,
                        got.count,
                        got.median,
                        got.low,
                        got.high,
                        got.coverage,
                        cell.verdicts,
                    )
                )
    columns = ("condition", "algorithm", curve.x_name, "operations", f"median ({curve.unit})", "low", "high",
               "coverage", "fidelity")  # fmt: skip
    return Table(columns, rows)
