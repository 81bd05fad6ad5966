from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.faults.book import Entry, State
from experiments.faults.fault import parse_fault
from experiments.faults.reconcile import rows
from experiments.faults.timeline import Moment
from experiments.results import FaultRow
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
S = 10**9
LOSS = Entry(
    1,
    parse_fault("host h3 rx drop 10%", FABRIC),
    Moment(S),
    state=State.EXPIRED,
    due_ns=11 * S,
    applied_ns=11 * S + 1_000_000,
    ended_ns=13 * S,
    observed={"packets": 1000, "struck": 100},
)


def row(entry: Entry) -> FaultRow:
    [found] = rows([entry], 10 * S, lambda _: "endpoint")
    return found


def test_times_are_told_from_the_first_operation_on() -> None:
    found = row(LOSS)
    assert (found.declared, found.applied_seconds, found.ended_seconds) == ("at 1s", 1.001, 3.0)
    assert (found.outcome, found.agrees, found.mechanism) == ("expired", True, "endpoint")
    assert row(replace(LOSS, by_hand=True)).declared == "by hand"


@pytest.mark.parametrize(("struck", "agrees"), [(0, False), (61, False), (63, True), (137, True), (139, False)])
def test_a_count_agrees_within_four_standard_deviations(struck: int, agrees: bool) -> None:
    found = row(replace(LOSS, observed={"packets": 1000, "struck": struck}))
    assert found.agrees is agrees
    assert ("100 ± 39 were to be expected" in found.remark) is not agrees


@pytest.mark.parametrize(("dropped", "agrees"), [(61, False), (63, True), (137, True), (139, False)])
def test_what_a_link_dropped_is_judged_alike(dropped: int, agrees: bool) -> None:
    fault = parse_fault("link e00-a00 loss 10%", FABRIC)
    assert row(replace(LOSS, fault=fault, observed={"packets": 1000, "dropped": dropped})).agrees is agrees


def test_what_no_packet_met_cannot_be_judged() -> None:
    found = row(replace(LOSS, observed={"packets": 0, "struck": 0}))
    assert (found.agrees, found.remark) == (None, "no packet came by")


def test_a_fault_that_came_late_or_not_at_all_is_not_as_declared() -> None:
    assert row(replace(LOSS, applied_ns=11 * S + 300_000_000)).agrees is False
    refused = row(replace(LOSS, state=State.REFUSED, why="no netem here", applied_ns=None, ended_ns=None))
    assert (refused.agrees, refused.remark, refused.applied_seconds) == (False, "no netem here", None)


def test_without_counts_nothing_is_claimed() -> None:
    assert row(replace(LOSS, fault=parse_fault("switch a10 down", FABRIC), observed={})).agrees is None
