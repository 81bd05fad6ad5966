"""The paper's comparisons beside theory and ours, as a table."""

from __future__ import annotations

from experiments.report.evidence import Evidence
from experiments.report.figure import Figure, NothingToShow, Plate, Table, Value
from experiments.report.paper import COMPARISONS, Comparison, Found

_CAPTION = (
    "What the paper reports of 188 nodes with links of 56 Gbit/s (Khalilov et al., SC'24), and where that is known "
    "from; what theory says of the fabric and the ranks used here; and what was measured, as ratios of medians, which "
    "need no scale. Theory of times is the proportion of the busiest links: what is lost beyond that, it does not know."
)


def _make(evidence: Evidence) -> list[Plate]:
    found = [comparison.find(evidence) if comparison.find else None for comparison in COMPARISONS]
    if not any(one.compares for one in found if one is not None):
        raise NothingToShow("no two algorithms that the paper compares were run in one setting; try the sweep paper")
    rows = [_row(comparison, one) for comparison, one in zip(COMPARISONS, found, strict=True)]
    columns = ("comparison", "paper", "its standing", "theory", "ours", "measured with")
    return [Plate("paper", "Comparisons of the paper", _CAPTION, Table(columns, rows))]


def _row(comparison: Comparison, found: Found | None) -> tuple[Value, ...]:
    told = (comparison.what, comparison.paper, comparison.standing)
    if found is not None:
        return (*told, found.theory, found.ours, found.where)
    return (*told, None, None, comparison.missing if comparison.find is None else f"no data: {comparison.missing}")


FIGURE = Figure("paper", "Comparisons of the paper", 5, _make)
