"""The planner on whole fabrics: whatever fails, in whatever order its commands are carried out."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.inflight import returns
from controller.live import End, Live, link_ends, switch_ends
from controller.plan import make_plan
from controller.prove import prove
from controller.rules import AddGroup, AskHosts, Barrier, Clear, ModifyGroup, SwitchRules
from tests.fake_fabric import FakeFabric, visits
from topo.fabric import Fabric
from topo.registry import parse_topology

GROUPS = ("239.192.0.1", "239.192.0.2")
NOTHING: frozenset[End] = frozenset()
SHAPES = ("fattree,k=4", "leafspine,leaves=4,spines=3,hosts=2")


def joined(shape: str) -> FakeFabric:
    """A fabric with every host in the first group and every third in the second, programmed."""
    fabric = parse_topology(shape)
    fakes = FakeFabric(fabric)
    for host in fabric.hosts:
        fakes.join(host.name, GROUPS[0])
        if host.index % 3 == 0:
            fakes.join(host.name, GROUPS[1])
    assert fakes.settle(random.Random(0)) is not None
    return fakes


def failures(fabric: Fabric) -> st.SearchStrategy[frozenset[End]]:
    """Any few links and switches."""
    links = [link_ends(fabric, link.a, link.b) for link in fabric.links]
    switches = [switch_ends(fabric, switch.name) for switch in fabric.switches]
    some = st.lists(st.sampled_from(links + switches), max_size=5)
    return some.map(lambda chosen: NOTHING.union(*chosen))


def addresses(fabric: Fabric, rng: random.Random) -> list[str]:
    """The groups, and a host."""
    return [*GROUPS, rng.choice(fabric.hosts).ip]


def assert_nowhere_twice(fakes: FakeFabric, rng: random.Random) -> None:
    rules = fakes.rules
    for address in addresses(fakes.fabric, rng):
        for sender in rng.sample(sorted(fakes.fabric.host), 3):
            got = visits(fakes.fabric, lambda _switch, _copy: rules, sender, address, fakes.down)
            assert max(got.values()) == 1, (sender, address, got)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_fails_and_returns_no_frame_is_anywhere_twice_and_the_plan_is_proven(
    shape: str, data: st.DataObject
) -> None:
    fakes = joined(shape)
    fabric = fakes.fabric
    rng = random.Random(data.draw(st.integers(0, 1 << 16)))

    def look() -> None:
        if rng.random() < 0.1:
            assert_nowhere_twice(fakes, rng)

    for _ in range(data.draw(st.integers(1, 3))):
        fakes.fail(data.draw(failures(fabric)))
        before = fakes.rules
        done = fakes.settle(rng, look)
        if done is None:
            assert before == fakes.rules == make_plan(Live(fabric, fakes.down), *members(fabric)).rules
        else:
            assert fakes.rules == done.plan(fabric).rules
        assert prove(fabric, fakes.rules, members(fabric)[0], fakes.down) == []


def members(fabric: Fabric) -> tuple[dict[str, list[str]], dict[str, int]]:
    everyone = [host.name for host in fabric.hosts]
    return {GROUPS[0]: everyone, GROUPS[1]: everyone[::3]}, {GROUPS[0]: 0, GROUPS[1]: 1}


def every_single_failure(fabric: Fabric) -> list[frozenset[End]]:
    trunks = [link for link in fabric.links if link.a in fabric.switch]
    return [
        *(link_ends(fabric, link.a, link.b) for link in trunks),
        *(switch_ends(fabric, switch.name) for switch in fabric.switches),
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_single_failure_or_return_needs_queues_to_run_dry(shape: str) -> None:
    fabric = parse_topology(shape)
    whole = make_plan(Live(fabric), *members(fabric)).rules
    for down in every_single_failure(fabric):
        around = make_plan(Live(fabric, down), *members(fabric)).rules
        assert returns(fabric, whole, around) == []
        assert returns(fabric, around, whole) == []


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_frame_under_way_comes_nowhere_twice_unless_that_is_said(shape: str, data: st.DataObject) -> None:
    fabric = parse_topology(shape)
    old, new = (make_plan(Live(fabric, data.draw(failures(fabric))), *members(fabric)).rules for _ in range(2))
    said = returns(fabric, old, new)
    rng = random.Random(data.draw(st.integers(0, 1 << 16)))
    for _ in range(20):
        got = visits(fabric, half_way(rng, old, new), rng.choice(fabric.hosts).name, rng.choice(addresses(fabric, rng)))
        switches = {node: number for node, number in got.items() if node in fabric.switch}
        assert max(switches.values()) == 1 or said


def half_way(
    rng: random.Random, old: dict[str, SwitchRules], new: dict[str, SwitchRules]
) -> Callable[[str, int], dict[str, SwitchRules]]:
    """Copies that meet the new rules from some number on; every copy of a copy has a greater number."""
    turn = rng.randrange(12)
    return lambda _switch, number: new if number > turn else old


def test_what_changes_is_changed_in_place_and_nothing_else(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    fakes.fail(switch_ends(k4, "c0"))
    kinds = {type(command) for batch in fakes.planner.replan().values() for command in batch}
    assert ModifyGroup in kinds
    assert not kinds & {Clear, AddGroup}


def test_balance_is_back_when_what_failed_is_back(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    whole = fakes.rules
    for down in (switch_ends(k4, "c0"), link_ends(k4, "e00", "a00"), link_ends(k4, "h1", "e00")):
        fakes.fail(down)
        assert fakes.settle(random.Random(1)) is not None
        assert fakes.rules != whole
        fakes.fail(NOTHING)
        assert fakes.settle(random.Random(2)) is not None
        assert fakes.rules == whole


def test_a_host_that_is_cut_off_is_named_and_keeps_its_membership(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    fakes.fail(switch_ends(k4, "e00"))
    done = fakes.settle(random.Random(3))
    assert done is not None
    assert done.plan(k4).trees[GROUPS[0]].unreached == ("h1", "h2")
    assert {"h1", "h2"} <= done.groups[GROUPS[0]]


def test_another_controller_learns_from_the_switches_and_changes_nothing(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    before, groups = fakes.rules, fakes.planner.groups
    fakes.restart_controller()
    assert fakes.planner.groups == groups
    batches = fakes.planner.replan()
    assert {type(command) for batch in batches.values() for command in batch} == {AskHosts, Barrier}
    assert batches.keys() == {"e00", "e01", "e10", "e11", "e20", "e21", "e30", "e31"}, "those that have hosts"
    for switch in batches:
        fakes.planner.acknowledged(switch, fakes.planner.generation)
    done = fakes.planner.announce()
    assert done is not None
    assert (done.groups, fakes.rules) == (groups, before)


@pytest.mark.parametrize("gone", ["a switch without its rules", "a host's link"])
def test_another_controller_asks_hosts_for_what_no_switch_can_tell_it(gone: str, k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    before, groups = fakes.rules, fakes.planner.groups
    fakes.fail(switch_ends(k4, "e00") if gone.startswith("a switch") else link_ends(k4, "h1", "e00"))
    assert fakes.settle(random.Random(8)) is not None
    if gone.startswith("a switch"):
        fakes.disconnect("e00")
        fakes.switches["e00"] = type(fakes.switches["e00"])()
    fakes.restart_controller()
    assert fakes.settle(random.Random(9)) is not None
    assert "h1" not in fakes.planner.groups[GROUPS[0]]
    fakes.fail(NOTHING)
    if gone.startswith("a switch"):
        fakes.connect("e00")
    done = fakes.settle(random.Random(10))
    assert done is not None
    assert (done.groups, fakes.rules) == (groups, before)


def test_hosts_are_asked_when_the_rules_that_bring_their_answers_are_in(k4: Fabric) -> None:
    fakes = FakeFabric(k4)
    *rules, before, question, last = fakes.planner.replan()["e00"]
    assert rules
    assert (before, question, last) == (Barrier(), AskHosts((1, 2)), Barrier(1))


def test_another_controller_also_learns_of_what_failed_meanwhile(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    fakes.down = switch_ends(k4, "c0") | frozenset((f"a{pod}0", 3) for pod in range(4))
    fakes.off = {"c0"}
    fakes.restart_controller()
    done = fakes.settle(random.Random(4))
    assert done is not None
    assert done.absent == ("c0",)
    assert prove(k4, fakes.rules, members(k4)[0], done.down) == []


def test_a_switch_that_comes_back_empty_gets_its_rules_again_and_is_not_cleared(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    whole = fakes.rules
    for switch in fakes.switches:
        fakes.disconnect(switch)
    assert fakes.planner.replan() == {}
    for switch in fakes.switches:
        fakes.switches[switch] = type(fakes.switches[switch])()
        fakes.connect(switch)
    assert fakes.settle(random.Random(5)) is not None
    assert fakes.rules == whole


def test_rules_that_nobody_can_read_are_cleared_first(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    fakes.disconnect("a00")
    fakes.planner.switch_up("a00", None)
    batch = fakes.planner.replan()["a00"]
    assert isinstance(batch[0], Clear)


def test_nothing_moves_while_a_switch_might_come_back_and_it_is_led_around_once_it_is_given_up(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    fakes.disconnect("c0")
    fakes.fail(link_ends(k4, "a11", "c2"))
    assert fakes.planner.missing == ("c0",)
    assert fakes.planner.replan() == {}
    fakes.planner.give_up()
    done = fakes.settle(random.Random(6))
    assert done is not None
    assert done.absent == ("c0",)
    assert switch_ends(k4, "c0") <= done.down
    assert prove(k4, fakes.rules, members(k4)[0], done.down) == []


def test_a_switch_whose_links_are_all_down_is_not_waited_for(k4: Fabric) -> None:
    fakes = joined("fattree,k=4")
    fakes.fail(switch_ends(k4, "c0"))
    fakes.disconnect("c0")
    assert fakes.planner.missing == ()
    done = fakes.settle(random.Random(7))
    assert done is not None
    assert done.absent == ("c0",)
