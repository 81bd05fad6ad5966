"""Codec: commands as OpenFlow 1.3 messages, and the switches' messages as values.

Needs of a ``datapath`` only its ``ofproto`` and ``ofproto_parser``; sends nothing and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller.igmp import general_query
from controller.rules import (
    Action,
    AddFlow,
    AddGroup,
    AskHosts,
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
    ToGroup,
)

Message = Any
"""A message of Ryu's OpenFlow 1.3 parser."""


COUNTERS = tuple(f"{way}_{what}" for way in ("rx", "tx") for what in ("packets", "bytes", "errors", "dropped"))
"""Of a port, by OpenFlow's names (section 7.3.5.6)."""
NOT_KEPT = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """An OFPT_ERROR: the names of its type and code (OpenFlow 1.3 section 7.4.4), and the message it is about."""

    xid: int
    type: str
    code: str


def encode(datapath: Any, command: Command) -> list[Message]:
    """The messages that carry out ``command``, in order (OpenFlow 1.3 sections 7.3.4.1, 7.3.4.2, 7.3.7, 7.3.8)."""
    match command:
        case Clear():
            return [
                _delete_flows(datapath, of13.OFPFC_DELETE, of13.OFPTT_ALL, 0, Match()),
                parser13.OFPGroupMod(datapath, of13.OFPGC_DELETE, of13.OFPGT_ALL, of13.OFPG_ALL),
            ]
        case AddGroup(group):
            return [_group(datapath, of13.OFPGC_ADD, group)]
        case ModifyGroup(group):
            return [_group(datapath, of13.OFPGC_MODIFY, group)]
        case DeleteGroup(group_id):
            return [parser13.OFPGroupMod(datapath, of13.OFPGC_DELETE, of13.OFPGT_ALL, group_id)]
        case AddFlow(flow) | ModifyFlow(flow):
            kind = of13.OFPFC_ADD if isinstance(command, AddFlow) else of13.OFPFC_MODIFY_STRICT
            return [_flow(datapath, kind, flow)]
        case DeleteFlow(priority, match):
            return [_delete_flows(datapath, of13.OFPFC_DELETE_STRICT, 0, priority, match)]
        case AskHosts(ports):
            return [_packet_out(datapath, ports, general_query())]
        case Barrier():
            return [parser13.OFPBarrierRequest(datapath)]


def port_states(ports: list[Any]) -> dict[int, bool]:
    """For every port of a port description (section 7.2.1), whether its link is up."""
    return {
        port.port_no: not (port.config & of13.OFPPC_PORT_DOWN or port.state & of13.OFPPS_LINK_DOWN) for port in ports
    }


def changed_port(message: Message) -> tuple[int, bool]:
    """(port, whether its link is up) of an OFPT_PORT_STATUS (section 7.4.3); a deleted port is down."""
    up = message.reason != of13.OFPPR_DELETE and port_states([message.desc])[message.desc.port_no]
    return message.desc.port_no, up


def handed_up(message: Message) -> tuple[int, bytes]:
    """(input port, frame) of an OFPT_PACKET_IN (section 7.4.1)."""
    return message.match["in_port"], bytes(message.data)


def port_stats_request(datapath: Any) -> Message:
    """Ask for the counters of every port (section 7.3.5.6)."""
    return parser13.OFPPortStatsRequest(datapath, 0, of13.OFPP_ANY)


def more_follows(message: Message) -> bool:
    """Whether a multipart reply is not the last of its request (section 7.3.5)."""
    return bool(message.flags & of13.OFPMPF_REPLY_MORE)


def port_counters(message: Message) -> dict[int, dict[str, int]]:
    """For every physical port of an OFPMP_PORT_STATS reply its counters by name (section 7.3.5.6).

    Bytes are of whole frames without their checksum; a counter that the switch does not keep (all ones) is 0.
    """
    return {
        entry.port_no: {name: 0 if (value := getattr(entry, name)) == NOT_KEPT else value for name in COUNTERS}
        for entry in message.body
        if entry.port_no <= of13.OFPP_MAX
    }


def refusal(message: Message) -> Refusal:
    """What an OFPT_ERROR says."""
    return Refusal(
        message.xid,
        of13.ofp_error_type_to_str(message.type),
        of13.ofp_error_code_to_str(message.type, message.code),
    )


def _flow(datapath: Any, kind: int, flow: Flow) -> Message:
    actions = [_action(action) for action in flow.actions]
    instructions = [parser13.OFPInstructionActions(of13.OFPIT_APPLY_ACTIONS, actions)] if actions else []
    return parser13.OFPFlowMod(
        datapath, command=kind, priority=flow.priority, match=_match(flow.match), instructions=instructions
    )


def _delete_flows(datapath: Any, kind: int, table: int, priority: int, match: Match) -> Message:
    return parser13.OFPFlowMod(
        datapath,
        command=kind,
        table_id=table,
        priority=priority,
        match=_match(match),
        out_port=of13.OFPP_ANY,
        out_group=of13.OFPG_ANY,
    )


def _group(datapath: Any, kind: int, group: Group) -> Message:
    buckets = [parser13.OFPBucket(actions=[parser13.OFPActionOutput(port)]) for port in group.ports]
    return parser13.OFPGroupMod(datapath, kind, of13.OFPGT_ALL, group.group_id, buckets)


def _packet_out(datapath: Any, ports: tuple[int, ...], frame: bytes) -> Message:
    actions = [parser13.OFPActionOutput(port) for port in ports]
    return parser13.OFPPacketOut(datapath, of13.OFP_NO_BUFFER, of13.OFPP_CONTROLLER, actions, frame)


def _match(match: Match) -> Any:
    """A match of OXM fields; those that are None are left out (section 7.2.3)."""
    names = ("in_port", "eth_type", "ip_proto", "ipv4_dst")
    fields = {name: getattr(match, name) for name in names}
    return parser13.OFPMatch(**{name: value for name, value in fields.items() if value is not None})


def _action(action: Action) -> Any:
    if isinstance(action, Output):
        return parser13.OFPActionOutput(action.port)
    if isinstance(action, ToGroup):
        return parser13.OFPActionGroup(action.group_id)
    # The whole frame: a report of many groups is longer than the 128 bytes that switches hand up by default.
    return parser13.OFPActionOutput(of13.OFPP_CONTROLLER, of13.OFPCML_NO_BUFFER)
