"""Algorithms side by side: one row for each that an experiment ran, from its summary alone.

What is compared are the operations that were verified; medians of them, with the fastest and the slowest. The yardstick
of a kind of collective is its best point-to-point algorithm, whoever carries it out: what a user would otherwise run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from endpoints.collectives.kinds import KindName
from endpoints.collectives.registry import Algorithm
from experiments.external.registry import External
from experiments.fidelity.verdict import SEVERITY
from experiments.results import Run, Summary


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of some values."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None of no values."""
        return cls(median(values), min(values), max(values)) if values else None


@dataclass(frozen=True, slots=True)
class Row:
    """One algorithm. What could not be measured is None.

    ``operations`` were verified, of ``attempts``; ``limit_ratio`` is the part of the limit that the median time
    reaches, ``speedup`` the best point-to-point algorithm's median time over this one's. ``link_bytes`` are those of
    all links, ``theory_ratio`` is how many there are for one in theory; for an external program ``bound_ratio`` is the
    same of a lower bound, and ``bound`` says of which. ``host_tx_bytes`` is what all hosts together have sent;
    ``cpu_seconds`` are those of the hosts' programs. ``extra_seconds`` are medians of other times that an external
    program has, by their name. ``note`` says what went wrong, or why it was left out.
    """

    algorithm: str
    kind: KindName
    multicast: bool
    operations: int = 0
    attempts: int = 0
    seconds: Spread | None = None
    limit_ratio: float | None = None
    speedup: float | None = None
    link_bytes: float | None = None
    theory_ratio: float | None = None
    bound_ratio: float | None = None
    bound: str | None = None
    host_tx_bytes: float | None = None
    cpu_seconds: float | None = None
    extra_seconds: Mapping[str, float] = field(default_factory=dict)
    fidelity: str = "unknown"
    note: str | None = None

    @property
    def status(self) -> str:
        """In one word."""
        if self.attempts == 0:
            return "skipped"
        return "verified" if self.operations == self.attempts else "FAILED"


def compare(summary: Summary) -> list[Row]:
    """The rows, in the scenario's order of algorithms, Allgathers first."""
    reasons = {entry.algorithm: entry.reason for entry in summary.skipped}
    rows = [
        _row(
            Row(entry.name, entry.kind, entry.multicast, bound=_bound(entry), note=reasons.get(entry.name)),
            [run for run in summary.runs if run.algorithm == entry.name],
            summary,
        )
        for entry in summary.scenario.collectives
    ]
    rows.sort(key=lambda row: row.kind)
    return [replace(row, speedup=_speedup(row, best_point_to_point(rows, row.kind))) for row in rows]


def best_point_to_point(rows: Sequence[Row], kind: KindName) -> Row | None:
    """The fastest algorithm of a kind that does without multicast."""
    found = [row for row in rows if row.kind == kind and not row.multicast and row.seconds is not None]
    return min(found, key=lambda row: row.seconds.median if row.seconds else 0.0, default=None)


def _row(named: Row, runs: Sequence[Run], summary: Summary) -> Row:
    good = [run for run in runs if run.verified and run.seconds is not None]
    errors = [run.error for run in runs if run.error is not None]
    seconds = Spread.of([run.seconds for run in good if run.seconds is not None])
    limit = _median([run.limit_seconds for run in good])
    theories = [run for run in good if run.link_bytes_theory]
    return replace(
        named,
        operations=len(good),
        attempts=len(runs),
        seconds=seconds,
        limit_ratio=limit / seconds.median if limit is not None and seconds is not None and seconds.median else None,
        link_bytes=_median([sum(run.link_bytes.values()) for run in good]),
        theory_ratio=_median(
            [sum(run.link_bytes.values()) / max(1, sum(run.link_bytes_theory.values())) for run in theories]
        ),
        bound_ratio=_median(
            [sum(run.link_bytes.values()) / run.link_bytes_bound for run in good if run.link_bytes_bound]
        ),
        host_tx_bytes=_median([sum(run.host_tx_bytes.values()) for run in good]),
        cpu_seconds=_median([spent for run in good if (spent := run.host_cpu_seconds) is not None]),
        extra_seconds={
            name: median([run.extra_seconds[name] for run in good if name in run.extra_seconds])
            for name in dict.fromkeys(name for run in good for name in run.extra_seconds)
        },
        fidelity=max((summary.verdict_of(run) for run in runs), key=SEVERITY.index, default="unknown"),
        note=errors[0] if errors else named.note,
    )


def _bound(entry: Algorithm) -> str | None:
    return entry.bound.words if isinstance(entry, External) and entry.bound is not None else None


def _speedup(row: Row, best: Row | None) -> float | None:
    if row.seconds is None or not row.seconds.median or best is None or best.seconds is None:
        return None
    return best.seconds.median / row.seconds.median


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
