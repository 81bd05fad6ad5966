from __future__ import annotations

import random
from functools import cache

import pytest

from experiments.chaos.conduct import Chaos
from experiments.faults.chaos import MENU, MOST_FAULTS, Ground, Lowest, timeline, undrawn
from experiments.faults.fault import Fault, parse_fault
from experiments.faults.forms import forms
from experiments.faults.link_faults import is_impairment, refusal
from experiments.faults.quantities import link_ends
from experiments.faults.timeline import Step
from experiments.link_spec import link_spec
from experiments.scenario import Scenario
from topo.impairments.registry import NETEM
from topo.registry import parse_topology, topologies

FABRIC = parse_topology("fattree,k=4")
GROUND = Ground(FABRIC, 50_000_000)
S = 10**9
WITHOUT_NETEM = NETEM - {"netem"}


def drawn(seed: int) -> tuple[Step, ...]:
    return timeline(random.Random(seed), GROUND, 2 * S)


@cache
def faults() -> list[Fault]:
    return [step.what for seed in range(400) for step in drawn(seed) if isinstance(step.what, Fault)]


def test_the_same_dice_give_the_same_timeline_and_others_another() -> None:
    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(50)}) == 50


def test_timelines_are_in_order_within_their_span() -> None:
    for seed in range(200):
        steps = drawn(seed)
        assert 1 <= len(steps) <= MOST_FAULTS
        assert [step.when.at_ns for step in steps] == sorted(step.when.at_ns for step in steps)
        assert all(0 <= step.when.at_ns <= 2 * S for step in steps)


def test_whatever_can_be_said_of_links_switches_and_daemons_is_drawn_and_of_hosts_every_kind() -> None:
    found = {(fault.target, fault.kind) for fault in faults()}
    every = {(form.target, form.kind) for form in forms()}
    assert found == every - {("host", "slow")}, "which takes time away and no packet"


def test_links_are_drawn_in_both_directions_and_in_one_at_hosts_and_inside() -> None:
    places = [link_ends(fault.place) for fault in faults() if is_impairment(fault)]
    assert {(single, one in FABRIC.host, other in FABRIC.host) for one, other, single in places} == {
        *((True, True, False), (True, False, True), (True, False, False)),
        *((False, True, False), (False, False, False)),
    }


def test_what_takes_a_host_away_is_brief_or_for_good() -> None:
    severe = [fault for fault in faults() if fault.kind in {"down", "stop", "blackhole"}]
    lasting = [fault for fault in severe if fault.duration_ns is None]
    assert 0.15 < len(lasting) / len(severe) < 0.3
    assert all(fault.duration_ns is None or fault.duration_ns <= 1.5 * S for fault in severe)


def test_a_blackhole_inside_the_fabric_is_always_brief() -> None:
    holes = [fault for fault in faults() if fault.kind == "blackhole"]
    inside = [fault for fault in holes if not {*link_ends(fault.place)[:2]} & FABRIC.host.keys()]
    assert inside
    assert all(fault.duration_ns is not None for fault in inside)
    assert any(fault.duration_ns is None for fault in holes)


@pytest.mark.parametrize("name", topologies())
def test_every_kind_can_be_drawn_on_every_topology(name: str) -> None:
    ground = Ground(parse_topology(name), 10**9)
    for kind in MENU:
        parse_fault(kind.draw(Lowest(), ground), ground.fabric)
        for seed in range(20):
            parse_fault(kind.draw(random.Random(seed), ground), ground.fabric)


def test_what_the_kernel_cannot_do_is_named_with_the_reason_and_never_drawn() -> None:
    spec = link_spec(Scenario.of({}))
    missing = undrawn(GROUND, lambda fault: refusal(fault, FABRIC, spec, WITHOUT_NETEM))
    assert missing.keys() == {
        *("bursts of loss on a link", "duplicates on a link", "corruption on a link", "delay of a link"),
    }
    assert all("netem" in reason for reason in missing.values())
    for seed in range(50):
        for step in timeline(random.Random(seed), GROUND, S, list(missing)):
            assert isinstance(step.what, Fault)
            assert refusal(step.what, FABRIC, spec, WITHOUT_NETEM) is None, str(step)


def test_with_netem_everything_is_drawn() -> None:
    spec = link_spec(Scenario.of({}))
    assert undrawn(GROUND, lambda fault: refusal(fault, FABRIC, spec, NETEM)) == {}


def test_kills_are_one_each_of_every_part_where_hosts_have_nics_and_of_hosts_elsewhere() -> None:
    nics = Chaos(Scenario.of({"size_bytes": 65536, "offload": "nic", "workers": 2}), 7, {}, kills=True)
    assert {_killed(nics, number) for number in range(60)} == {None, "application", "nic", "worker"}
    hosts = Chaos(Scenario.of({"size_bytes": 65536}), 7, {}, kills=True)
    assert {_killed(hosts, number) for number in range(20)} == {None}


def _killed(chaos: Chaos, number: int) -> object:
    """The part that is killed in a run, which has no other fault."""
    [step] = chaos.scenario(number).timeline
    assert isinstance(step.what, Fault)
    assert step.what.kind == "kill"
    return step.what.get("part")


def test_each_numbered_run_is_a_scenario_that_does_not_depend_on_the_others() -> None:
    chaos = Chaos(Scenario.of({"size_bytes": 65536}), 7, {})
    assert chaos.scenario(3) == chaos.scenario(3)
    assert chaos.scenario(3).faults != chaos.scenario(4).faults
