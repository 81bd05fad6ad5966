"""Intervals of the median: the ranks that tables give, and that they cover what they promise."""

from __future__ import annotations

import random

import pytest
from scipy.stats import binom

from experiments.stats import CONFIDENCE, ENOUGH, Estimate, coverage, estimate, interval_rank


def test_few_values_have_their_range() -> None:
    assert estimate([3.0]) == Estimate(1, 3.0, 3.0, 3.0, None)
    assert estimate([5, 1, 4, 2]) == Estimate(4, 3.0, 1, 5, None)
    assert interval_rank(ENOUGH - 1) is None


# Ranks of the 95 % interval as tables of the sign test have them (Hollander and Wolfe, table A.2; Conover, table A3).
@pytest.mark.parametrize(("count", "rank"), [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (100, 40)])
def test_the_ranks_are_those_of_the_sign_test(count: int, rank: int) -> None:
    assert interval_rank(count) == rank
    found = estimate([float(value) for value in range(1, count + 1)])
    assert (found.low, found.high) == (rank, count + 1 - rank)


@pytest.mark.parametrize("count", range(ENOUGH, 60))
def test_the_coverage_is_the_binomial_s_and_the_next_rank_has_too_little(count: int) -> None:
    rank = interval_rank(count)
    assert rank is not None
    assert coverage(count, rank) == pytest.approx(1 - 2 * binom.cdf(rank - 1, count, 0.5))
    assert coverage(count, rank) >= CONFIDENCE > coverage(count, rank + 1)


def test_a_skewed_distribution_s_median_is_covered_as_often_as_promised() -> None:
    dice = random.Random(1)
    hits = 0
    for _ in range(2000):
        found = estimate([dice.expovariate(1) for _ in range(10)])
        hits += found.low <= 0.6931 <= found.high
    assert 0.965 < hits / 2000 < 0.99, "97.9 % for ten values"


def test_no_values_have_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        estimate([])
