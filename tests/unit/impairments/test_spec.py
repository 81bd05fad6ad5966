"""Misuse is refused at once, with the value and what would be right; every impairment is found by its file."""

from __future__ import annotations

import pytest

from endpoints.impairments import registry
from endpoints.impairments.impairer import Impairer
from endpoints.impairments.registry import UnknownImpairment, check, impairment, impairments
from endpoints.impairments.spec import ImpairmentSpec, parse_psns


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either a probability or a list of PSNs"),
        ({"probability": 0.1, "psns": (1,)}, "either a probability or a list of PSNs"),
        ({"psns": ()}, "list of PSNs is empty"),
        ({"probability": 1.01}, r"probability 1\.01: from 0 to 1"),
        ({"probability": -0.1}, r"probability -0\.1"),
        ({"probability": float("nan")}, "probability nan"),
        ({"psns": ((5, 3),)}, "PSNs 5-3: from 0 to 16777215, the lower first"),
        ({"psns": (1 << 24,)}, "PSNs 16777216-16777216"),
        ({"psns": (-1,)}, "PSNs -1--1"),
        ({"psns": (1,), "sightings": 0}, "sightings 0: at least 1"),
        ({"psns": (1,), "time_ns": 0}, "time_ns 0: at least 1"),
        ({"psns": (1,), "packets": -3}, "packets -3: at least 1"),
        ({"psns": (1,), "direction": "both"}, "direction 'both': rx or tx"),
        ({"psns": (1,), "transport": "uc"}, "transport 'uc': any, ud or rc"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(ValueError, match=f"^drop: .*{message}"):
        ImpairmentSpec("drop", **options)


def test_psns_are_read_as_people_write_them():
    assert parse_psns("17, 40-60,3") == (17, (40, 60), 3)
    for text in ("", "17,", "a", "1-", "-5", "1-2-3"):
        with pytest.raises(ValueError, match="numbers and ranges with commas between"):
            parse_psns(text)


def test_every_impairment_is_found_by_its_file():
    assert list(impairments()) == ["corrupt", "delay", "drop", "duplicate", "reorder"]
    assert all(entry.name == name and entry.summary for name, entry in impairments().items())


def test_unknown_impairment_names_the_known_ones():
    with pytest.raises(UnknownImpairment, match="unknown impairment 'loss': known are corrupt, delay, drop"):
        impairment("loss")
    spec = ImpairmentSpec("loss", probability=0.1, hosts=frozenset({9}))
    with pytest.raises(UnknownImpairment, match="'loss'"):
        Impairer([spec], 1, 0, "rx", {})


def test_what_an_impairment_does_not_take_is_refused():
    with pytest.raises(ValueError, match="drop: time_ns 5: it takes no time"):
        check(ImpairmentSpec("drop", probability=0.1, time_ns=5))
    with pytest.raises(ValueError, match="delay: packets 5: it does not count packets"):
        check(ImpairmentSpec("delay", probability=0.1, packets=5))
    assert check(ImpairmentSpec("reorder", probability=0.1, packets=5, time_ns=7)).name == "reorder"


def test_two_files_of_one_name_are_refused(monkeypatch):
    twin = impairment("drop")
    monkeypatch.setattr("endpoints.impairments.delay.IMPAIRMENT", twin)
    with pytest.raises(RuntimeError, match="two impairments are called 'drop'"):
        registry.impairments.__wrapped__()
