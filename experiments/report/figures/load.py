"""The fabric, drawn with the bytes that each direction of each link carried as colour."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize

from experiments.report import style
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, NothingToShow, Plate, Table, Value
from experiments.report.groups import alike, typical
from topo.fabric import Fabric, link_key

_CAPTION = (
    "What each direction of each link carried, of the operation whose time is the median of its repetitions. Of the "
    "two lines of a link, seen from its lower end, the left one leads up. Grey: less than 1 % of the most."
)
_MIB = 1 << 20
_MOST = 4
_UNUSED = "#cccccc"
_WIDTH, _STOREY = 5.2, 0.65
"""Inches of a drawing, and between its tiers."""


def _make(evidence: Evidence) -> list[Plate]:
    moving = [operation for operation in evidence.counting if any(operation.run.link_bytes.values())]
    if not moving:
        raise NothingToShow("no operation has bytes by link")
    groups = alike(sorted(moving, key=_telling), evidence.varying)
    shown = {title: typical(group) for title, group in list(groups.items())[:_MOST]}
    most = max(max(operation.run.link_bytes.values()) for operation in shown.values()) / _MIB
    with style.in_style():
        tiers = max(len({switch.tier for switch in operation.scenario.fabric.switches}) for operation in shown.values())
        figure, axes = style.grid_of_axes(len(shown), inches=(_WIDTH, 0.9 + _STOREY * tiers), across=2)
        norm = Normalize(0, most)
        for one, (title, operation) in zip(axes, shown.items(), strict=True):
            _draw(one, operation, norm)
            one.set_title(style.titled(title, operation.verdict, 52))
        bar = figure.colorbar(ScalarMappable(norm, style.RAMP), ax=axes, shrink=0.8, pad=0.02)
        bar.set_label("bytes on the link (MiB)")
    more = len(groups) - len(shown)
    caption = _CAPTION + (f" {more} more settings are in the table." if more else "")
    return [Plate("load", "Load of each link", caption, _table(_typical(groups)), figure)]


def _typical(groups: Mapping[str, list[Operation]]) -> dict[str, Operation]:
    return {title: typical(group) for title, group in groups.items()}


def _telling(operation: Operation) -> tuple[float | str, ...]:
    """Largest first; of equals multicast."""
    run = operation.run
    return (
        -run.bytes_per_rank * run.ranks,
        operation.scenario.loss,
        not run.algorithm.startswith("mcast"),
        run.algorithm,
    )


def places(fabric: Fabric) -> dict[str, tuple[float, float]]:
    """Where each node stands: hosts at the bottom, each tier spread evenly over the width from 0 to 1."""
    rows = [[host.name for host in fabric.hosts]]
    tiers = sorted({switch.tier for switch in fabric.switches})
    rows += [[switch.name for switch in fabric.switches if switch.tier == tier] for tier in tiers]
    return {
        name: ((number + 0.5) / len(row), float(height))
        for height, row in enumerate(rows)
        for number, name in enumerate(row)
    }


def _draw(axes: Axes, operation: Operation, norm: Normalize) -> None:
    fabric = operation.scenario.fabric
    at = places(fabric)
    ramp = colormaps[style.RAMP]
    few = len(fabric.hosts) <= 32
    lines = sorted(
        (
            operation.run.link_bytes.get(link_key(sender, receiver), 0) / _MIB,
            _beside(at[link.a], at[link.b], side * (0.022 if few else 0.007)),
        )
        for link in fabric.links
        for sender, receiver, side in ((link.a, link.b, -1), (link.b, link.a, 1))
    )
    colours = [ramp(norm(carried)) if carried >= 0.01 * (norm.vmax or 0) else _UNUSED for carried, _ in lines]
    axes.add_collection(
        LineCollection([line for _, line in lines], colors=colours, linewidths=1.8 if few else 0.8, zorder=1)
    )
    for name, (x, y) in at.items():
        host = name in fabric.host
        if few or not host:
            size = 6.5 if few else 4
            axes.text(x, y, name, ha="center", va="center", fontsize=size, zorder=2,
                      bbox={"boxstyle": "round,pad=0.25" if not host else "circle,pad=0.15", "facecolor": "white",
                            "edgecolor": "#555555", "linewidth": 0.6})  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.2, max(y for _, y in at.values()) + 0.2)
    axes.set_axis_off()


def _beside(low: tuple[float, float], high: tuple[float, float], inches: float) -> list[tuple[float, float]]:
    """The line from ``low`` to ``high`` moved to its right by about ``inches``."""
    along = ((high[0] - low[0]) * _WIDTH, (high[1] - low[1]) * _STOREY)
    length = math.hypot(*along)
    right = along[1] / length * inches / _WIDTH, -along[0] / length * inches / _STOREY
    return [(x + right[0], y + right[1]) for x, y in (low, high)]


def _table(shown: Mapping[str, Operation]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (title, link, carried, operation.run.link_bytes_theory.get(link))
        for title, operation in shown.items()
        for link, carried in operation.run.link_bytes.items()
    ]
    return Table(("setting", "link", "measured (bytes)", "theory (bytes)"), rows)


FIGURE = Figure("load", "Load of each link", 70, _make)
