"""Expectations of a scenario: what they accept, and every way in which results may disappoint."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import UserError
from experiments.expectations import PACKETS
from experiments.regression import disappointments
from experiments.results import Fidelity, Packets, PlatformInfo, Run, Summary
from experiments.scenario import Scenario


def summary(
    expect: list[dict[str, Any]], ratios: tuple[float | None, ...] = (0.94, 0.96, 0.99), **of_run: Any
) -> Summary:
    scenario = Scenario.of({"topology": "single,hosts=2", "expect": expect})
    runs = [
        Run(
            algorithm="mcast_allgather",
            iteration=number,
            ranks=2,
            bytes_per_rank=1,
            verified=True,
            seconds=1.0,
            limit_seconds=1.0,
            limit_ratio=ratio,
            packets=Packets(recovered=7),
            fidelity=Fidelity(verdict="valid", reasons=[]),
        )
        for number, ratio in enumerate(ratios, 1)
    ]
    return Summary(scenario=scenario, platform=PlatformInfo(kernel="", datapath="user"), runs=runs)


@pytest.mark.parametrize(
    "expected",
    [
        {"metric": "limit_ratio", "at_least": 0.96},
        {"metric": "limit_ratio", "at_least": 0.97, "tolerance": 0.02},
        {"metric": "limit_ratio", "at_least": 0.9, "at_most": 0.96},
        {"metric": "packets.recovered", "equals": 7},
        {"metric": "packets.recovered", "equals": 8, "tolerance": 0.2},
        {"metric": "fidelity.verdict", "equals": "valid"},
        {"metric": "seconds", "algorithm": "mcast_allgather", "at_most": 1},
    ],
)
def test_what_holds_is_not_told(expected: dict[str, Any]) -> None:
    assert not list(disappointments(summary([expected])))


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ({"metric": "limit_ratio", "at_least": 0.97}, "limit_ratio is 0.96, expected at least 0.97"),
        (
            {"metric": "limit_ratio", "at_most": 0.9, "tolerance": 0.01},
            "limit_ratio is 0.96, expected at most 0.9 within 0.01 of it",
        ),
        ({"metric": "packets.recovered", "equals": 0}, "packets.recovered is 7, expected 0"),
        ({"metric": "fidelity.verdict", "equals": "overloaded"}, "fidelity.verdict is valid, expected overloaded"),
    ],
)
def test_what_does_not_hold_is_one_line_with_the_median(expected: dict[str, Any], line: str) -> None:
    assert list(disappointments(summary([expected]))) == [f"mcast_allgather: {line}"]


def test_what_was_not_measured_does_not_hold() -> None:
    found = list(disappointments(summary([{"metric": "limit_ratio", "at_least": 0}], ratios=(None,))))
    assert found == ["mcast_allgather: limit_ratio is not measured"]
    assert len(list(disappointments(summary([{"metric": "fidelity.verdict", "equals": "valid"}], ratios=())))) == 1


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        ({"metric": "speed", "at_least": 1}, "unknown metric 'speed'"),
        ({"metric": "seconds"}, "give at_least, at_most or both, or equals"),
        ({"metric": "seconds", "at_least": 1, "equals": 1}, "give at_least, at_most or both, or equals"),
        ({"metric": "seconds", "equals": "valid"}, "a verdict equals a word"),
        ({"metric": "fidelity.verdict", "equals": 1}, "a verdict equals a word"),
        ({"metric": "seconds", "at_most": 1, "algorithm": "ring_allgather"}, "'ring_allgather' is not run"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_anything_runs(expected: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        summary([expected])


def test_every_count_of_packets_can_be_expected() -> None:
    assert set(PACKETS) == {name for name, field in Packets.model_fields.items() if field.annotation is int}


def test_a_scenario_with_expectations_repeats() -> None:
    made = summary([{"metric": "seconds", "at_most": 2}])
    assert Summary.from_json(made.to_json()).scenario == made.scenario
