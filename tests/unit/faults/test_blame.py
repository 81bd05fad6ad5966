from __future__ import annotations

from typing import Any

import pytest

from experiments.faults.blame import Defect, End, blamed, cut_off, find, suspects
from experiments.faults.fault import parse_fault
from experiments.faults.timeline import Moment, Step, parse_what, split_step
from experiments.patience import Patience
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
S = 10**9
PATIENCE = Patience(outage=3 * S, peer=4 * S, operation=100 * S)


def of(*steps: str) -> tuple[Step, ...]:
    """Faults with their times, or at once: ``at 1s: host h3 kill``, ``host h3 kill``."""
    found = [split_step(text) if text.startswith("at ") else (Moment(0), text) for text in steps]
    return tuple(Step(when, parse_what(words, FABRIC)) for when, words in found)


def cut(*words: str) -> set[str]:
    return set(cut_off(FABRIC, [parse_fault(text, FABRIC) for text in words]))


def hosts(first: int, last: int) -> set[str]:
    return {f"h{index}" for index in range(first, last + 1)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["host h3 stop"], {"h3"}),
        (["host h3 kill"], {"h3"}),
        (["host h3 rx drop 100%"], {"h3"}),
        (["host h3 tx drop 100%"], {"h3"}),
        (["host h3 rx drop 99%"], set()),
        (["host h3 rx drop 100% from h4"], set()),
        (["host h3 rx delay 100% by 5ms"], set()),
        (["link h3-e01 down"], {"h3"}),
        (["link h3->e01 blackhole"], {"h3"}),
        (["link e01->h3 blackhole"], {"h3"}),
        (["link e01->h3 loss 100%"], {"h3"}),
        (["link e01->h3 loss 50%"], set()),
        (["link * loss 50%"], set()),
        (["link * blackhole"], hosts(1, 16)),
        (["link e00-a00 down"], set()),
        (["link e00-a00 down", "link e00-a01 down"], {"h1", "h2"}),
        (["link e00->a00 blackhole", "link a01->e00 blackhole"], set()),
        (["link e00->a00 blackhole", "link e00->a01 blackhole"], {"h1", "h2"}),
        (["switch e00 down"], {"h1", "h2"}),
        (["switch a00 down"], set()),
        (["switch a00 down", "switch a01 down"], hosts(1, 4)),
        (["switch c0 down", "switch c1 down", "switch c2 down"], set()),
        (["switch c0 down", "switch c1 down", "switch c2 down", "switch c3 down"], hosts(1, 16)),
        (["controller kill"], set()),
        (["vswitchd kill"], set()),
    ],
)
def test_who_is_cut_off_follows_from_the_graph(words: list[str], expected: set[str]) -> None:
    assert cut(*words) == expected


def test_of_equal_parts_either_may_be_blamed_and_of_unequal_ones_the_smaller() -> None:
    halves = parse_topology("leafspine,leaves=2,spines=1,hosts=2")
    assert cut_off(halves, [parse_fault("link l0-s0 down", halves)]) == halves.host.keys()
    thirds = parse_topology("leafspine,leaves=3,spines=1,hosts=2")
    assert cut_off(thirds, [parse_fault("link l0-s0 down", thirds)]) == {"h1", "h2"}


@pytest.mark.parametrize(
    ("steps", "until_s", "expected"),
    [
        (["host h3 stop"], 4, {"h3"}),
        (["host h3 stop"], 2, set()),
        (["host h3 stop for 2.9s"], 90, set()),
        (["host h3 stop for 3s"], 90, {"h3"}),
        (["host h3 stop for 2s", "at 1.5s: link h3-e01 down for 2s"], 90, {"h3"}),
        (["host h3 stop for 2s", "at 2.5s: host h3 stop for 2s"], 90, set()),
        (["host h3 stop", "at 2s: clear 1"], 90, set()),
        (["host h3 stop", "at 4s: clear 1"], 90, {"h3"}),
        (["at 1s: host h3 kill"], 1, {"h3"}),
        (["at 1s: host h3 kill"], 0.9, set()),
        (["host h3 kill", "host h5 stop for 1s"], 90, {"h3"}),
        (["switch a00 down for 9s", "at 4s: switch a01 down for 2s"], 90, set()),
        (["switch a00 down for 9s", "at 4s: switch a01 down for 4s"], 90, hosts(1, 4)),
    ],
)
def test_whoever_was_away_for_long_enough_may_be_blamed(steps: list[str], until_s: float, expected: set[str]) -> None:
    assert suspects(of(*steps), FABRIC, 3 * S, int(until_s * S)).keys() == expected


def test_a_suspect_comes_with_the_faults_that_took_it_away() -> None:
    steps = of("host h5 rx drop 5%", "switch a00 down", "switch a01 down")
    assert suspects(steps, FABRIC, 3 * S, 9 * S)["h1"] == "switch a00 down and switch a01 down"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("the endpoint of h5 (rank 4) ended unasked with status -9", ["h5"]),
        ("h5 (rank 4) seems to be at fault; h1 (rank 0): rank 4 does not answer", ["h5"]),
        ("h5 (rank 4), h11 (rank 10) received not a single packet; 16 of 16 ranks gave up", ["h5", "h11"]),
        ("ovs-vswitchd ended unasked; h1 said so", []),
        ("", []),
    ],
)
def test_who_is_blamed_stands_before_who_said_it(error: str, expected: list[str]) -> None:
    assert blamed(error, FABRIC) == expected


FAILED: dict[str, Any] = {"verified": False, "error": "h3 (rank 2) seems to be at fault; h1 (rank 0): no answer"}
VERIFIED: dict[str, Any] = {"verified": True, "error": ""}


@pytest.mark.parametrize(
    ("steps", "end", "defect"),
    [
        (["host h3 kill"], VERIFIED, None),
        (["host h3 kill"], FAILED, None),
        (["host h3 stop"], FAILED, None),
        (["switch e01 down"], FAILED, None),
        (["host h3 kill"], FAILED | {"wrong_bytes": 1}, Defect.WRONG_BYTES),
        (["host h3 kill"], VERIFIED | {"wrong_bytes": 1}, Defect.WRONG_BYTES),
        (["host h3 kill"], FAILED | {"took": 101 * S}, Defect.TOO_LATE),
        (["host h3 rx drop 10%"], VERIFIED | {"took": 101 * S}, Defect.TOO_LATE),
        (["host h3 rx drop 10%"], FAILED, Defect.NO_EXCUSE),
        (["host h3 stop for 2s"], FAILED, Defect.NO_EXCUSE),
        (["vswitchd kill"], FAILED, Defect.NO_EXCUSE),
        (["at 11s: host h3 kill"], FAILED, Defect.NO_EXCUSE),
        (["host h4 kill"], FAILED, Defect.WRONG_NAME),
        (["host h3 kill"], FAILED | {"error": ""}, Defect.WRONG_NAME),
        (["host h3 kill", "host h4 kill"], FAILED | {"missing": ("h3", "h4")}, None),
        (["host h3 kill"], FAILED | {"missing": ("h3", "h4")}, Defect.WRONG_NAME),
        (["host h3 kill"], FAILED | {"error": "something is wrong; h3"}, Defect.WRONG_NAME),
        (["host h3 kill"], FAILED | {"error": "h3 (rank 2), h4 (rank 3) heard nothing"}, Defect.WRONG_NAME),
        (["link e00-a00 queue 5"], VERIFIED | {"refused": {"link e00-a00 queue 5": "no such"}}, Defect.NOT_PUT_IN),
        (
            ["host h3 stop", "host h3 rx drop 5%"],
            FAILED | {"refused": {"host h3 rx drop 5%": "does not answer"}},
            None,
        ),
        (
            ["host h3 stop", "host h4 rx drop 5%"],
            FAILED | {"refused": {"host h4 rx drop 5%": "does not answer"}},
            Defect.NOT_PUT_IN,
        ),
    ],
)
def test_how_a_run_may_end(steps: list[str], end: dict[str, Any], defect: Defect | None) -> None:
    found = find(of(*steps), FABRIC, PATIENCE, End(**{"wrong_bytes": 0, "took": 10 * S, **end}))
    assert (found and found.defect) == defect


def test_a_finding_says_what_would_have_been_right() -> None:
    found = find(of("host h4 kill"), FABRIC, PATIENCE, End(verified=False, error="h3 failed", wrong_bytes=0, took=S))
    assert found is not None
    assert found.words == "h4 (host h4 kill) would be right, not: h3 failed"
