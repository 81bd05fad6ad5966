"""Medians and how far they can be believed, without assuming how the values are distributed.

From :data:`ENOUGH` values on, the interval is the nonparametric confidence interval of the median by order statistics:
with ``B`` binomial(n, 1/2), the interval from the ``j``-th smallest to the ``j``-th largest value covers the median
with a probability of ``1 - 2 P(B < j)``; ``j`` is the greatest for which that is at least 95 % (David and Nagaraja,
Order Statistics, 2003, section 7.1; what Hoefler and Belli, SC'15, ask of benchmarks). Fewer values cannot reach 95 %:
there the interval is from the smallest to the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
ENOUGH = 6
"""Fewest values of which an interval can cover the median with 95 %."""

METHOD = (
    "Points are medians over operations. Bars are the nonparametric 95 % confidence interval of the median (order "
    f"statistics); below {ENOUGH} operations they go from the smallest to the largest."
)
"""For captions."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median and its interval. ``coverage`` is the interval's confidence, None where it is the whole range."""

    count: int
    median: float
    low: float
    high: float
    coverage: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """The median of ``values``, of which there must be one, and its interval."""
    if not values:
        raise ValueError("the median of no values")
    ordered = sorted(values)
    count = len(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    rank = interval_rank(count)
    if rank is None:
        return Estimate(count, middle, ordered[0], ordered[-1], None)
    return Estimate(count, middle, ordered[rank - 1], ordered[-rank], coverage(count, rank))


def interval_rank(count: int) -> int | None:
    """The greatest ``j`` whose interval of ``count`` values has :data:`CONFIDENCE`; None where there is none."""
    fit = [rank for rank in range(1, count // 2 + 1) if coverage(count, rank) >= CONFIDENCE]
    return max(fit, default=None)


def coverage(count: int, rank: int) -> float:
    """Probability that the median lies from the ``rank``-th smallest to the ``rank``-th largest of ``count`` values."""
    outside = sum(math.comb(count, below) for below in range(rank))
    return 1 - 2 * outside / float(2**count)
