"""Whose process a fault had stopped or killed, and when: nobody else's lateness is excused by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.faults.book import Entry, State
from experiments.faults.disturbed import disturbed
from experiments.faults.fault import parse_fault
from experiments.faults.timeline import Moment
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
S = 10**9
STOP = Entry(3, parse_fault("host h3 stop for 2s", FABRIC), Moment(S), applied_ns=11 * S, ended_ns=13 * S)
WORDS = "fault 3 (host h3 stop for 2s)"


@pytest.mark.parametrize(
    ("since", "until", "excused"),
    [(9, 10, False), (9, 11, True), (11, 12, True), (12, 20, True), (13, 14, True), (14, 20, False), (9, 20, True)],
)
def test_a_stop_counts_for_the_time_in_which_it_was_in_force(since: int, until: int, excused: bool) -> None:
    assert disturbed([STOP], since * S, until * S) == ({"h3": WORDS} if excused else {})


def test_one_that_has_not_ended_goes_on_and_one_that_was_never_in_force_does_nothing() -> None:
    assert disturbed([replace(STOP, ended_ns=None)], 90 * S, 91 * S) == {"h3": WORDS}
    assert disturbed([replace(STOP, applied_ns=None, ended_ns=None)], 0, 91 * S) == {}


def test_a_kill_counts_for_good_and_what_is_done_to_packets_or_others_does_not() -> None:
    killed = Entry(1, parse_fault("host h7 kill", FABRIC), Moment(S), state=State.DONE, applied_ns=11 * S)
    others = [
        replace(killed, number=number, fault=parse_fault(words, FABRIC))
        for number, words in enumerate(("host h1 rx drop 5%", "switch a10 down", "vswitchd kill"), 2)
    ]
    assert disturbed([killed, *others], 50 * S, 60 * S) == {"h7": "fault 1 (host h7 kill)"}


def test_a_slow_host_is_late_by_its_fault() -> None:
    assert disturbed([replace(STOP, fault=parse_fault("host h3 slow 60%", FABRIC))], 11 * S, 12 * S) == {
        "h3": "fault 3 (host h3 slow 60%)"
    }


def test_of_several_the_first_is_told() -> None:
    again = replace(STOP, number=9, applied_ns=12 * S)
    assert disturbed([STOP, again], 10 * S, 20 * S) == {"h3": WORDS}
