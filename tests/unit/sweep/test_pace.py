"""Time left: what theory says of each point, and what points like it took beyond that."""

from __future__ import annotations

import pytest

from experiments.sweep.grid import grid_of
from experiments.sweep.pace import Pace, least_seconds

GRID = grid_of(
    {
        "rate_bps": "8M",
        "warmup": 1,
        "iterations": 2,
        "vary": {"topology": ["single,hosts=3", "fattree,k=4"], "size_bytes": [100_000, 1_000_000]},
        "repetitions": 2,
    },
    "study",
)
POINT = {(p.scenario.ranks, p.scenario.size_bytes, p.repetition): p for p in GRID.points}


def test_the_least_time_is_that_of_all_operations_on_their_links() -> None:
    assert least_seconds(POINT[3, 1_000_000, 1].scenario) == pytest.approx(3 * 2 * 1.0)
    assert least_seconds(POINT[16, 100_000, 1].scenario) == pytest.approx(3 * 15 * 0.1)


def test_nothing_is_said_before_anything_is_known() -> None:
    assert Pace().left(GRID.points) is None
    assert Pace().left([]) == 0


def test_a_point_is_expected_to_take_what_its_like_took_beyond_theory() -> None:
    pace = Pace()
    pace.took(POINT[3, 100_000, 1], 0.6 + 1.0)
    assert pace.expect(POINT[3, 100_000, 2]) == pytest.approx(1.6), "the same configuration"
    assert pace.expect(POINT[3, 1_000_000, 1]) == pytest.approx(7.0), "the same fabric takes as long to build"
    assert pace.expect(POINT[16, 100_000, 1]) == pytest.approx(5.5), "nothing is known of this fabric"
    pace.took(POINT[16, 100_000, 1], 4.5 + 3.0)
    assert pace.expect(POINT[16, 1_000_000, 1]) == pytest.approx(48.0)
    pace.took(POINT[3, 100_000, 2], 0.6 + 2.0)
    assert pace.expect(POINT[3, 100_000, 1]) == pytest.approx(2.1), "the mean of those seen"
    assert pace.left([POINT[3, 100_000, 1], POINT[16, 1_000_000, 1]]) == pytest.approx(50.1)


def test_no_point_takes_less_than_no_time() -> None:
    pace = Pace()
    pace.took(POINT[16, 1_000_000, 1], 1.0)
    assert pace.expect(POINT[3, 100_000, 1]) == 0
