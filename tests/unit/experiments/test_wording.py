"""Fields and durations as people say them."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.scenario import Impairment, Scenario
from experiments.wording import tell_duration, tell_field


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("loss", 0.05, "loss 5%"),
        ("size_bytes", 65536, "size 64 KiB"),
        ("rate_bps", 50_000_000, "links 50 Mbit/s"),
        ("link_delay_ns", 5000, "link delay 5 us"),
        ("peer_timeout_ns", 3_000_000_000, "peer timeout 3 s"),
        ("topology", "fattree,k=4", "fattree,k=4"),
        ("algorithms", ("a", "b"), "a,b"),
        ("capture", (), "capture none"),
        ("input", None, "input none"),
        ("scale", 1000.0, "scale 1000"),
        ("chains", "all", "chains all"),
        ("impairments", (Impairment(kind="drop", hosts=("h1",), psns=(3,)),), "impairments drop:rx:h1:3"),
        ("impairments", ({"kind": "drop", "hosts": (), "probability": 0.1},), "impairments drop:0.1"),
    ],
)
def test_a_field_is_told_with_its_unit(field: str, value: Any, words: str) -> None:
    assert tell_field(field, value) == words


def test_every_field_of_a_scenario_can_be_told() -> None:
    scenario = Scenario.of({})
    assert all(tell_field(name, getattr(scenario, name)) for name in Scenario.model_fields)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "1 s"), (0, "1 s"), (59.6, "60 s"), (99, "99 s"), (100, "2 min"), (5400, "90 min"), (7260, "2 h 1 min")],
)
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert tell_duration(seconds) == words
