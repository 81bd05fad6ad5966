from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.openflow13 import encode
from controller.rules import (
    Action,
    AddFlow,
    AddGroup,
    Barrier,
    Clear,
    Command,
    DeleteFlow,
    DeleteGroup,
    Flow,
    Group,
    Match,
    ModifyFlow,
    ModifyGroup,
    Output,
    SwitchRules,
    ToController,
    ToGroup,
    common,
    difference,
    only_grows,
)
from tests.fake_openflow import PROTOCOL, BarrierReply, FakeSwitch

TO_A = Match(eth_type=0x0800, ipv4_dst="239.1.1.1")
TO_B = Match(eth_type=0x0800, ipv4_dst="239.1.1.2")
IGMP = Match(eth_type=0x0800, ip_proto=2, in_port=1)


def apply(switch: FakeSwitch, commands: tuple[Command, ...]) -> None:
    """Carry out commands by real messages; none may be refused, and no flow may ever point at a missing group."""
    for command in commands:
        for message in encode(PROTOCOL, command):
            assert switch.send(message) is None or command == Barrier()
            pointed = {a.group_id for actions in switch.flows.values() for a in actions if isinstance(a, ToGroup)}
            assert pointed <= switch.groups.keys()


@st.composite
def switch_rules(draw: st.DrawFn) -> SwitchRules:
    """Rules that a switch can hold: each group once, each (priority, match) once, no flow to a missing group."""
    groups = draw(st.dictionaries(st.integers(1, 4), st.sets(st.integers(1, 4))))
    actions: list[tuple[Action, ...]] = [
        (),
        (ToController(),),
        *((Output(port),) for port in range(1, 4)),
        *((ToGroup(n),) for n in groups),
    ]
    keys = st.tuples(st.sampled_from([0, 100, 200]), st.sampled_from([TO_A, TO_B, IGMP, Match()]))
    flows = draw(st.dictionaries(keys, st.sampled_from(actions)))
    return SwitchRules(
        frozenset(Flow(priority, match, action) for (priority, match), action in flows.items()),
        frozenset(Group(number, tuple(sorted(ports))) for number, ports in groups.items()),
    )


@given(switch_rules(), switch_rules())
def test_the_difference_turns_the_old_rules_into_the_new(old: SwitchRules, new: SwitchRules) -> None:
    switch = FakeSwitch()
    apply(switch, difference(SwitchRules(), old))
    assert switch.rules == old
    apply(switch, difference(old, new))
    assert switch.rules == new


@given(switch_rules())
def test_equal_rules_give_no_commands(rules: SwitchRules) -> None:
    assert difference(rules, rules) == ()


@given(switch_rules(), switch_rules())
def test_the_common_part_is_reached_by_taking_away_only(old: SwitchRules, new: SwitchRules) -> None:
    between = common(old, new)
    assert {flow for flow in between.flows if flow.actions} == {flow for flow in old.flows & new.flows if flow.actions}
    for command in difference(old, between):
        drops = isinstance(command, AddFlow | ModifyFlow) and not command.flow.actions
        assert drops or isinstance(command, ModifyGroup | DeleteGroup | DeleteFlow | Barrier)
    for command in difference(between, new):
        unblocks = isinstance(command, DeleteFlow) and Flow(command.priority, command.match, ()) in between.flows
        assert unblocks or isinstance(command, AddGroup | ModifyGroup | AddFlow | ModifyFlow | Barrier)
    for group in between.groups:
        for rules in (old, new):
            (whole,) = (g for g in rules.groups if g.group_id == group.group_id)
            assert set(group.ports) <= set(whole.ports)


@given(switch_rules(), switch_rules())
def test_a_change_only_grows_if_the_common_part_lacks_nothing_of_the_old(old: SwitchRules, new: SwitchRules) -> None:
    between = common(old, new)
    whole = {group.group_id: group.ports for group in between.groups}
    kept = all(flow in between.flows for flow in old.flows if flow.actions)
    kept = kept and all(whole.get(group.group_id, ()) == group.ports for group in old.groups if group.ports)
    assert only_grows(old, new) == kept
    assert only_grows(between, old)
    assert only_grows(between, new)


@given(switch_rules(), switch_rules())
def test_the_common_part_on_the_way_makes_no_difference_in_the_end(old: SwitchRules, new: SwitchRules) -> None:
    switch = FakeSwitch()
    for one, other in ((SwitchRules(), old), (old, common(old, new)), (common(old, new), new)):
        apply(switch, difference(one, other))
    assert switch.rules == new


def test_groups_come_before_the_flows_that_name_them_and_go_after_them() -> None:
    old = SwitchRules(frozenset({Flow(200, TO_A, (ToGroup(1),))}), frozenset({Group(1, (1,))}))
    new = SwitchRules(frozenset({Flow(200, TO_B, (ToGroup(2),))}), frozenset({Group(2, (2,))}))
    assert difference(old, new) == (
        AddGroup(Group(2, (2,))),
        Barrier(),
        AddFlow(Flow(200, TO_B, (ToGroup(2),))),
        DeleteFlow(200, TO_A),
        Barrier(),
        DeleteGroup(1),
    )


def test_what_stays_is_modified_in_place() -> None:
    old = SwitchRules(
        frozenset({Flow(200, TO_A, (ToGroup(1),)), Flow(100, TO_B, (Output(1),))}), frozenset({Group(1, (1, 2))})
    )
    new = SwitchRules(
        frozenset({Flow(200, TO_A, (ToGroup(1),)), Flow(100, TO_B, (Output(2),))}), frozenset({Group(1, (1, 3))})
    )
    assert difference(old, new) == (
        ModifyGroup(Group(1, (1, 3))),
        Barrier(),
        ModifyFlow(Flow(100, TO_B, (Output(2),))),
    )


def test_clear_leaves_nothing() -> None:
    switch = FakeSwitch()
    apply(switch, (AddGroup(Group(1, (1,))), AddFlow(Flow(200, TO_A, (ToGroup(1),))), Clear()))
    assert switch.rules == SwitchRules()


def test_a_barrier_is_answered() -> None:
    (message,) = encode(PROTOCOL, Barrier(7))
    assert FakeSwitch().send(message) == BarrierReply(1)
