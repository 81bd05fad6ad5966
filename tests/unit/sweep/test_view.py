"""What is said of a point that is over."""

from __future__ import annotations

import io

from experiments.sweep.grid import grid_of
from experiments.sweep.journal import Record
from experiments.sweep.view import View, told
from tests.unit.report.fabricated import summary

DONE = Record(key="a", status="done", folder="runs/a", seconds=3.21)
[POINT] = grid_of({"vary": {"loss": [0.01]}}, "study").points


def test_a_point_is_told_with_its_part_of_the_limit_and_its_fidelity() -> None:
    assert told(DONE, summary(ratios=(0.5, 0.8, 0.9))) == "0.800 of the limit"
    assert told(DONE, summary(verdict="overloaded")) == "0.900 of the limit (overloaded)"


def test_of_several_algorithms_each_is_told() -> None:
    both = summary(algorithms="mcast_allgather,mcast_broadcast", ratios=(0.5,))
    assert told(DONE, both) == "mcast_allgather 0.500, mcast_broadcast 0.500 of the limit"


def test_a_failed_point_is_told_with_its_error() -> None:
    assert told(Record(key="a", status="failed", error="h3 is gone"), None) == "FAILED: h3 is gone"


def test_a_line_says_how_far_the_sweep_is_and_how_long_it_will_take() -> None:
    said = io.StringIO()
    view = View(said, 40, live=False)
    view.over(POINT, DONE, summary(), 9, 125.0)
    view.over(POINT, DONE, summary(), 40, 0.0)
    assert said.getvalue().splitlines() == [
        " 9/40  loss 1%, repetition 1: 0.900 of the limit, 3.2 s, about 2 min left",
        "40/40  loss 1%, repetition 1: 0.900 of the limit, 3.2 s",
    ]
