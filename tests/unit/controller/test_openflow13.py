from __future__ import annotations

import dataclasses
import struct
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller import openflow13
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
from topo.counters import Counters
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


def stats_reply(*ports: dict[str, int], more: bool = False) -> Any:
    """An OFPMP_PORT_STATS reply as Ryu reads it from a switch's bytes."""
    names = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors")
    entries = b"".join(
        struct.pack("!I4x12QII", port["port_no"], *(port.get(name, 0) for name in names), 0, 0, 0, 0, 1, 2)
        for port in ports
    )
    flags = of13.OFPMPF_REPLY_MORE if more else 0
    body = struct.pack("!HH4x", of13.OFPMP_PORT_STATS, flags) + entries
    data = struct.pack("!BBHI", of13.OFP_VERSION, of13.OFPT_MULTIPART_REPLY, 8 + len(body), 7) + body
    return parser13.OFPMultipartReply.parser(PROTOCOL, of13.OFP_VERSION, data[1], len(data), 7, bytearray(data))


def test_port_statistics_are_read_by_port_and_by_name() -> None:
    reply = stats_reply({"port_no": 1, "rx_packets": 10, "rx_bytes": 10_000, "tx_dropped": 3}, {"port_no": 2})
    counters = openflow13.port_counters(reply)
    assert set(counters) == {1, 2}
    assert counters[1] == dict.fromkeys(openflow13.COUNTERS, 0) | {
        "rx_packets": 10, "rx_bytes": 10_000, "tx_dropped": 3,
    }  # fmt: skip
    assert set(openflow13.COUNTERS) == {field.name for field in dataclasses.fields(Counters)}


def test_the_switchs_own_port_and_counters_that_it_does_not_keep_are_left_out() -> None:
    reply = stats_reply({"port_no": of13.OFPP_LOCAL, "rx_packets": 9}, {"port_no": 1, "rx_errors": (1 << 64) - 1})
    assert openflow13.port_counters(reply) == {1: dict.fromkeys(openflow13.COUNTERS, 0)}


def test_a_reply_says_whether_more_follows() -> None:
    assert openflow13.more_follows(stats_reply(more=True))
    assert not openflow13.more_follows(stats_reply())


def test_statistics_are_asked_of_every_port() -> None:
    request = openflow13.port_stats_request(PROTOCOL)
    request.set_xid(1)
    request.serialize()
    kind, _, port = struct.unpack_from("!HH4xI", request.buf, 8)
    assert (kind, port) == (of13.OFPMP_PORT_STATS, of13.OFPP_ANY)
