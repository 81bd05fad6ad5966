from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.errors import UserError
from experiments.inputs import parse_timed_fault
from experiments.scenario import Scenario


def scenario(*faults: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.of({"faults": list(faults), **more})


def test_a_timeline_in_a_scenario_is_the_same_when_it_is_given_back() -> None:
    first = scenario(
        {"at": "1.5s", "fault": "link  e00-a00 loss 2.0% for 3000ms"}, {"at": 0, "operation": 2, "fault": "clear 1"},
        iterations=2,
    )  # fmt: skip
    written = json.loads(first.model_dump_json())
    assert written["faults"] == [
        {"at": "1.5s", "fault": "link e00-a00 loss 2% for 3s", "operation": 1},
        {"at": "0s", "fault": "clear 1", "operation": 2},
    ]
    assert Scenario.of({**written, "shaped_bps": None}) == first
    assert [str(step) for step in first.timeline] == [
        "at 1.5s: link e00-a00 loss 2% for 3s",
        "at 0s of operation 2: clear 1",
    ]


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"at": "1s", "fault": "link e00-a00 los 2%"}, "faults: fault 'link e00-a00 los 2%': 'los': expected"),
        ({"at": "1s", "fault": "clear 1"}, "faults: at 1s: clear 1: no such fault before it"),
        ({"at": "1s", "operation": 3, "fault": "host h1 kill"}, "there are 1 operations, without warm-ups"),
        ({"at": "soon", "fault": "host h1 kill"}, "write a time with its unit"),
        ({"at": "1s", "fault": "host h1 kill", "on": 1}, "scenario has no 'faults.0.on': known are at, fault"),
    ],
)
def test_what_is_wrong_with_a_timeline_is_told_before_anything_starts(entry: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError) as problem:
        scenario(entry)
    assert complaint in str(problem.value)


def test_the_option_says_the_same_as_the_file() -> None:
    assert parse_timed_fault("at 1.5s of operation 2: host h1 kill") == {
        "at": 1_500_000_000,
        "operation": 2,
        "fault": "host h1 kill",
    }
    with pytest.raises(UserError, match="--fault 'host h1 kill': write a time"):
        parse_timed_fault("host h1 kill")
