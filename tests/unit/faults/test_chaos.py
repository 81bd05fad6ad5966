from __future__ import annotations

import random
from typing import Any

import pytest

from experiments.chaos import scenario_for
from experiments.faults.chaos import BOUND_S, MOST_FAULTS, may_fail, timeline, wrong_with
from experiments.faults.fault import Fault, parse_fault
from experiments.faults.timeline import Moment, Step
from experiments.scenario import Scenario
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
S = 10**9


def drawn(seed: int) -> tuple[Step, ...]:
    return timeline(random.Random(seed), FABRIC, 2 * S)


def test_the_same_dice_give_the_same_timeline_and_others_another() -> None:
    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(50)}) == 50


def test_timelines_are_in_order_within_their_span_and_of_mixed_kinds() -> None:
    kinds = set()
    for seed in range(200):
        steps = drawn(seed)
        assert 1 <= len(steps) <= MOST_FAULTS
        assert [step.when.at_ns for step in steps] == sorted(step.when.at_ns for step in steps)
        assert all(0 <= step.when.at_ns <= 2 * S for step in steps)
        kinds |= {(step.what.target, step.what.kind) for step in steps if isinstance(step.what, Fault)}
    assert {("link", "down"), ("switch", "down"), ("host", "stop"), ("host", "kill"), ("host", "rx drop")} <= kinds


def test_each_numbered_run_is_a_scenario_that_does_not_depend_on_the_others() -> None:
    base = Scenario.of({"size_bytes": 65536})
    assert scenario_for(base, 7, 3) == scenario_for(base, 7, 3)
    assert scenario_for(base, 7, 3).faults != scenario_for(base, 7, 4).faults


def of(*words: str) -> tuple[Step, ...]:
    return tuple(Step(Moment(0), parse_fault(text, FABRIC)) for text in words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("host h3 rx drop 10%", False),
        ("host h3 tx delay 5% by 20ms for 1s", False),
        ("host h3 rx drop psn 1-9", False),
        ("host h3 rx drop 100% for 1s", True),
        ("host h3 kill", True),
        ("host h3 stop for 1s", True),
        ("link e00-a00 down for 1s", True),
        ("switch a10 down for 1s", True),
    ],
)
def test_only_what_is_taken_away_excuses_a_failure(words: str, expected: bool) -> None:
    assert may_fail(of(words)) is expected


@pytest.mark.parametrize(
    ("words", "ended", "complaint"),
    [
        ("host h3 kill", {"verified": True}, None),
        ("host h3 kill", {"error": "the endpoint of h3 (rank 2) ended unasked"}, None),
        ("host h3 kill", {"error": "something went wrong"}, "names nobody"),
        ("host h3 kill", {}, "names nobody: without a word"),
        ("host h3 rx drop 5%", {"error": "h3 (rank 2) seems to be at fault"}, "nothing was taken away"),
        ("host h3 kill", {"error": "h3", "wrong_bytes": 1}, "1 bytes are wrong"),
        ("host h3 kill", {"verified": True, "seconds": BOUND_S + 1}, "more than"),
    ],
)
def test_how_a_run_may_end(words: str, ended: dict[str, Any], complaint: str | None) -> None:
    found = wrong_with(of(words), FABRIC, **{"verified": False, "error": "", "wrong_bytes": 0, "seconds": 9.0, **ended})
    assert (found is None) is (complaint is None)
    assert complaint is None or complaint in str(found)
