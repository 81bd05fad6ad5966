from __future__ import annotations

from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller.live import Live
from controller.openflow13 import Refusal, changed_port, encode, handed_up, port_states, refusal
from controller.plan import make_plan
from controller.rules import (
    AddFlow,
    AddGroup,
    DeleteGroup,
    Flow,
    Group,
    Match,
    ModifyFlow,
    ModifyGroup,
    Output,
    SwitchRules,
    ToGroup,
    difference,
)
from tests.fake_openflow import PROTOCOL, Error, FakeSwitch
from topo.fabric import Fabric


def send(switch: FakeSwitch, command: Any) -> list[Any]:
    return [switch.send(message) for message in encode(PROTOCOL, command)]


def port(number: int, *, config: int = 0, state: int = 4) -> Any:
    return parser13.OFPPort(number, "02:00:00:00:00:01", b"s1-eth1", config, state, 0, 0, 0, 0, 0, 0)


def test_the_plan_of_every_switch_means_what_it_says(fabric: Fabric) -> None:
    hosts = list(fabric.host)
    groups = {"239.1.1.1": hosts, "239.1.1.2": hosts[:1], "239.1.1.3": hosts[::2]}
    plan = make_plan(Live(fabric), groups, {group: slot for slot, group in enumerate(groups)})
    for name, rules in plan.rules.items():
        switch = FakeSwitch(ports=frozenset(fabric.ports[name]))
        for command in difference(SwitchRules(), rules):
            assert not [answer for answer in send(switch, command) if isinstance(answer, Error)]
        assert switch.rules == rules


def test_a_second_group_of_the_same_id_is_refused_and_modifying_is_not() -> None:
    switch = FakeSwitch()
    send(switch, AddGroup(Group(1, (1,))))
    assert send(switch, AddGroup(Group(1, (2,)))) == [Error("OFPET_GROUP_MOD_FAILED", "OFPGMFC_GROUP_EXISTS")]
    assert switch.groups == {1: (1,)}
    assert send(switch, ModifyGroup(Group(1, (2, 3)))) == [None]
    assert switch.groups == {1: (2, 3)}
    assert send(switch, ModifyGroup(Group(2, ()))) == [Error("OFPET_GROUP_MOD_FAILED", "OFPGMFC_UNKNOWN_GROUP")]


def test_a_flow_to_a_missing_group_is_refused() -> None:
    flow = Flow(200, Match(eth_type=0x0800, ipv4_dst="239.1.1.1"), (ToGroup(9),))
    assert send(FakeSwitch(), AddFlow(flow)) == [Error("OFPET_BAD_ACTION", "OFPBAC_BAD_OUT_GROUP")]


def test_deleting_a_group_takes_its_flows_along() -> None:
    switch = FakeSwitch()
    flow = Flow(200, Match(eth_type=0x0800, ipv4_dst="239.1.1.1"), (ToGroup(1),))
    for command in (AddGroup(Group(1, (1,))), AddFlow(flow), DeleteGroup(1)):
        send(switch, command)
    assert switch.rules == SwitchRules()


def test_modifying_matches_priority_and_match_exactly() -> None:
    switch = FakeSwitch()
    match = Match(eth_type=0x0800, ipv4_dst="10.0.0.2")
    send(switch, AddFlow(Flow(100, match, (Output(1),))))
    send(switch, ModifyFlow(Flow(101, match, (Output(2),))))
    send(switch, ModifyFlow(Flow(100, Match(eth_type=0x0800), (Output(2),))))
    assert switch.rules.flows == {Flow(100, match, (Output(1),))}
    send(switch, ModifyFlow(Flow(100, match, (Output(2),))))
    assert switch.rules.flows == {Flow(100, match, (Output(2),))}


@pytest.mark.parametrize(
    ("config", "state", "up"),
    [(0, of13.OFPPS_LIVE, True), (0, 0, True), (0, of13.OFPPS_LINK_DOWN, False), (of13.OFPPC_PORT_DOWN, 0, False)],
)
def test_a_port_is_up_when_neither_it_nor_its_link_is_down(config: int, state: int, up: bool) -> None:
    assert port_states([port(3, config=config, state=state)]) == {3: up}
    modified = parser13.OFPPortStatus(PROTOCOL, of13.OFPPR_MODIFY, port(3, config=config, state=state))
    assert changed_port(modified) == (3, up)


def test_a_deleted_port_is_down() -> None:
    assert changed_port(parser13.OFPPortStatus(PROTOCOL, of13.OFPPR_DELETE, port(3))) == (3, False)


def test_a_frame_that_is_handed_up_keeps_its_port_and_bytes() -> None:
    message = parser13.OFPPacketIn(PROTOCOL, match=parser13.OFPMatch(in_port=5), data=bytearray(b"frame"))
    assert handed_up(message) == (5, b"frame")


def test_an_error_is_named() -> None:
    message = parser13.OFPErrorMsg(PROTOCOL, of13.OFPET_GROUP_MOD_FAILED, of13.OFPGMFC_GROUP_EXISTS, b"")
    message.set_xid(77)
    assert refusal(message) == Refusal(
        77, f"OFPET_GROUP_MOD_FAILED({of13.OFPET_GROUP_MOD_FAILED})", "OFPGMFC_GROUP_EXISTS(0)"
    )
