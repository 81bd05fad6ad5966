"""The search for the highest valid rate, on machines of every speed."""

from __future__ import annotations

import pytest

from experiments.calibration import RATES_MBPS, Search, size_bytes


def searched(capacity: float) -> tuple[int | None, list[int]]:
    """The rate found on a machine that can do ``capacity`` Mbit/s, and those that were tried."""
    search = Search()
    tried: list[int] = []
    bound = search.tries_left
    while (rate := search.next()) is not None:
        assert search.tries_left >= 1
        tried.append(rate)
        search.record(valid=rate <= capacity)
    assert len(tried) <= bound
    return search.best, tried


@pytest.mark.parametrize("capacity", [0, *RATES_MBPS, 57, 10_000])
def test_the_highest_rate_that_is_valid_is_found_whatever_the_machine(capacity: int) -> None:
    best, tried = searched(capacity)
    assert best == max((rate for rate in RATES_MBPS if rate <= capacity), default=None)
    assert len(tried) == len(set(tried)) <= 7


def test_the_usual_rate_is_tried_first() -> None:
    assert searched(80)[1][0] == 50


def test_rates_ascend_and_differ() -> None:
    assert list(RATES_MBPS) == sorted(set(RATES_MBPS))


def test_an_operation_takes_as_long_at_every_rate() -> None:
    for rate in (10, 50, 200):
        seconds = size_bytes(rate, 16, 4096) * 15 * 8 / (rate * 1e6)
        assert 1.9 < seconds <= 2.0
    assert size_bytes(1, 128, 4096) == 16 * 4096
