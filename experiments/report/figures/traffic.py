"""Traffic on all links by tier, beside theory, and its ratio to multicast's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.report import style
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, NothingToShow, Plate, Table, Value
from experiments.report.groups import Cell, Panel, panels
from experiments.units import format_size
from topo.fabric import Fabric

_CAPTION = (
    "Bytes that all links carried, both directions, headers and control included, by the kernel's counters (median of "
    "the operations); the black line is what theory says. Behind each bar: how much that is of multicast's. With ranks "
    "in depth-first order a ring moves exactly 2 - 2/P times as much."
)
_MIB = 1 << 20
_TIERS = ("host uplinks", "host downlinks", "switch tiers 1 and 2", "switch tiers 2 and 3")


def _make(evidence: Evidence) -> list[Plate]:
    moving = [operation for operation in evidence.counting if any(operation.run.link_bytes.values())]
    if not moving:
        raise NothingToShow("no operation has bytes by link")
    found = panels(evidence, lambda operation: operation.run.bytes_per_rank, (), moving)
    found.sort(key=lambda panel: (-len(panel.series), -max(panel.places), panel.title))
    shown = found[: style.MOST_PANELS]
    with style.in_style():
        tallest = max(len(panel.series) for panel in shown)
        figure, axes = style.grid_of_axes(len(shown), inches=(4.4, 0.9 + 0.34 * tallest), across=2)
        tiers: dict[str, None] = {}
        for one, panel in zip(axes, shown, strict=True):
            tiers |= dict.fromkeys(_draw(one, panel))
        handles = [
            *(Patch(color=_colour(name), label=name) for name in tiers),
            Line2D([], [], color="black", linewidth=2, label="theory"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.2)
    more = len(found) - len(shown)
    caption = _CAPTION + (f" {more} more conditions are in the table." if more else "")
    return [Plate("traffic", "Traffic on all links", caption, _table(found), figure)]


def _draw(axes: Axes, panel: Panel) -> list[str]:
    """A bar per algorithm; the tiers that occur."""
    reference = _reference(panel)
    names = list(panel.series)
    tiers: list[str] = []
    most = 0.0
    for row, name in enumerate(names):
        operations = _operations(panel, name)
        left = 0.0
        for tier, carried in by_tier(operations).items():
            axes.barh(row, carried / _MIB, left=left, color=_colour(tier), height=0.62, linewidth=0)
            left += carried / _MIB
            tiers.append(tier)
        expected = theory_bytes(operations)
        if expected:
            axes.vlines(expected / _MIB, row - 0.4, row + 0.4, color="black", linewidth=2)
        if reference and name != reference[0]:
            axes.text(left, row, f"  {total_bytes(operations) / reference[1]:.2f} ×", va="center", fontsize=8)
        most = max(most, left)
    style.few_ticks(axes)
    axes.set_yticks(range(len(names)), [_named(panel, name) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, most * 1.18)
    axes.set_xlabel("bytes on all links (MiB)")
    axes.set_title(style.broken(panel.title, 44))
    return tiers


def _named(panel: Panel, algorithm: str) -> str:
    """An algorithm, and whether all of its operations were valid."""
    verdict = Cell(0, tuple(_operations(panel, algorithm))).verdict
    return f"{algorithm}\n({style.SHORT_FIDELITY.get(verdict, verdict)})"


def _reference(panel: Panel) -> tuple[str, float] | None:
    """Multicast's name and bytes, if it is in the panel."""
    for name in panel.series:
        if name.startswith("mcast"):
            return name, total_bytes(_operations(panel, name))
    return None


def _operations(panel: Panel, algorithm: str) -> list[Operation]:
    return [operation for cell in panel.series[algorithm] for operation in cell.operations]


def total_bytes(operations: Sequence[Operation]) -> float:
    """Bytes on all links, median of the operations."""
    return median(sum(operation.run.link_bytes.values()) for operation in operations)


def theory_bytes(operations: Sequence[Operation]) -> float:
    """The same by theory; 0 where nobody has computed it."""
    return median(sum(operation.run.link_bytes_theory.values()) for operation in operations)


def by_tier(operations: Sequence[Operation]) -> dict[str, float]:
    """Bytes by tier of links, medians of the operations."""
    fabric = operations[0].scenario.fabric
    table: dict[str, list[float]] = defaultdict(list)
    for operation in operations:
        sums = dict.fromkeys((_tier(fabric, link) for link in operation.run.link_bytes), 0)
        for link, carried in operation.run.link_bytes.items():
            sums[_tier(fabric, link)] += carried
        for tier, carried in sums.items():
            table[tier].append(carried)
    return {tier: median(table[tier]) for tier in _TIERS if tier in table}


def _tier(fabric: Fabric, link: str) -> str:
    sender, receiver = link.split("->")
    if sender in fabric.host:
        return _TIERS[0]
    if receiver in fabric.host:
        return _TIERS[1]
    return _TIERS[2 + min(1, fabric.switch[sender].tier, fabric.switch[receiver].tier)]


def _colour(tier: str) -> str:
    return ("#0072B2", "#56B4E9", "#E69F00", "#CC79A7")[_TIERS.index(tier)]


def _table(found: Sequence[Panel]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for panel in found:
        reference = _reference(panel)
        for name in panel.series:
            operations = _operations(panel, name)
            tiers = by_tier(operations)
            measured, expected = total_bytes(operations), theory_bytes(operations)
            rows.append(
                (
                    panel.title, name, format_size(operations[0].run.bytes_per_rank), operations[0].run.ranks,
                    len(operations), *(tiers.get(tier) for tier in _TIERS), measured, expected or None,
                    measured / expected if expected else None, measured / reference[1] if reference else None,
                )
            )  # fmt: skip
    columns = (
        "condition", "algorithm", "size", "ranks", "operations", *(f"{tier} (bytes)" for tier in _TIERS),
        "all links (bytes)", "theory (bytes)", "measured over theory", "over multicast",
    )  # fmt: skip
    return Table(columns, rows)


FIGURE = Figure("traffic", "Traffic on all links", 60, _make)
