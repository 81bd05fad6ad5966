"""The comparison as a person sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.table import Table

from experiments.comparison import Row, best_point_to_point
from experiments.results import Summary
from experiments.units import format_rate, format_size

COLUMNS = (
    *("time\n(ms)", "min - max\n(ms)", "of\nlimit", "vs best\np2p"),
    *("links\n(MB)", "of\ntheory", "hosts\nsend\n(MB)", "CPU\n(s)"),
)


def comparison_table(summary: Summary, rows: Sequence[Row]) -> Table:
    """A line for each row; what was not measured is a dash."""
    scenario = summary.scenario
    size, rate = format_size(scenario.size_bytes), format_rate(scenario.link_rate_bps)
    table = Table(
        title=f"{scenario.topology}, {scenario.ranks} ranks, blocks of {size}, links of {rate}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    table.add_column("algorithm", no_wrap=True)
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("emulation", no_wrap=True)
    table.add_column("status", no_wrap=True)
    before = rows[0].kind if rows else None
    for row in rows:
        if row.kind != before:
            table.add_section()
        before = row.kind
        table.add_row(row.algorithm, *_cells(row), row.fidelity if row.attempts else "-", row.status)
    return table


def remarks(rows: Sequence[Row]) -> Iterator[str]:
    """What the table's figures leave open, a line each."""
    for kind in dict.fromkeys(row.kind for row in rows):
        best = best_point_to_point(rows, kind)
        if best is not None:
            yield f"best point-to-point {kind}: {best.algorithm}"
    for row in rows:
        if row.bound_ratio is not None:
            yield f"* {row.algorithm}: of a lower bound, payload alone: {row.bound}"
        for name, seconds in row.extra_seconds.items():
            yield f"{row.algorithm}: {name} {seconds * 1e3:.1f} ms"
        if row.note is not None:
            yield f"{row.algorithm}: {row.status}, {row.note}"


def _cells(row: Row) -> list[str]:
    def show(value: float | None, form: Callable[[float], str]) -> str:
        return "-" if value is None else form(value)

    spread = row.seconds
    return [
        show(None if spread is None else spread.median, lambda seconds: f"{seconds * 1e3:.1f}"),
        "-" if spread is None else f"{spread.least * 1e3:.1f} - {spread.most * 1e3:.1f}",
        show(row.limit_ratio, lambda ratio: f"{ratio:.3f}"),
        show(row.speedup, lambda ratio: f"{ratio:.2f}x"),
        show(row.link_bytes, lambda count: f"{count / 1e6:.1f}"),
        show(row.theory_ratio, lambda ratio: f"{ratio:.3f}") if row.bound_ratio is None else f"{row.bound_ratio:.3f}*",
        show(row.host_tx_bytes, lambda count: f"{count / 1e6:.1f}"),
        show(row.cpu_seconds, lambda seconds: f"{seconds:.2f}"),
    ]
