"""What a switch says it holds when it connects: OpenFlow 1.3 multipart replies (section 7.3.5), read into rules.

The counterpart of :mod:`controller.openflow13`, which writes them. Whatever no rule of ours looks like makes the whole
switch's rules unknown, since nobody can tell what they would do next to ours.
"""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller.rules import Action, Flow, Group, Match, Output, SwitchRules, ToController, ToGroup

_MATCH_FIELDS = frozenset({"in_port", "eth_type", "ip_proto", "ipv4_dst"})


class _Foreign(Exception):
    """A flow or group that is none of ours; never leaves this module."""


def questions(datapath: Any) -> list[Any]:
    """The messages that ask a switch for all of its flows and all of its groups."""
    flows = parser13.OFPFlowStatsRequest(
        datapath, 0, of13.OFPTT_ALL, of13.OFPP_ANY, of13.OFPG_ANY, 0, 0, parser13.OFPMatch()
    )
    return [flows, parser13.OFPGroupDescStatsRequest(datapath, 0)]


class Inventory:
    """The answers of one switch, as they come in."""

    def __init__(self) -> None:
        self._flows: set[Flow] = set()
        self._groups: set[Group] = set()
        self._unanswered = {of13.OFPMP_FLOW, of13.OFPMP_GROUP_DESC}
        self._foreign = False

    def add(self, message: Any) -> bool:
        """Take in an OFPMP_FLOW or OFPMP_GROUP_DESC reply; whether all have come."""
        try:
            if message.type == of13.OFPMP_FLOW:
                self._flows.update(map(_flow, message.body))
            else:
                self._groups.update(map(_group, message.body))
        except _Foreign:
            self._foreign = True
        if not message.flags & of13.OFPMPF_REPLY_MORE:
            self._unanswered.discard(message.type)
        return not self._unanswered

    @property
    def rules(self) -> SwitchRules | None:
        """What the switch holds; None if there is something among it that no plan of ours has."""
        return None if self._foreign else SwitchRules(frozenset(self._flows), frozenset(self._groups))


def _flow(entry: Any) -> Flow:
    fields = dict(entry.match.items())
    masked = any(isinstance(value, tuple) for value in fields.values())
    if entry.table_id or entry.idle_timeout or entry.hard_timeout or masked or not fields.keys() <= _MATCH_FIELDS:
        raise _Foreign
    actions: list[Action] = []
    for instruction in entry.instructions:
        if instruction.type != of13.OFPIT_APPLY_ACTIONS:
            raise _Foreign
        actions += map(_action, instruction.actions)
    return Flow(entry.priority, Match(**fields), tuple(actions))


def _action(action: Any) -> Action:
    if action.type == of13.OFPAT_GROUP:
        return ToGroup(action.group_id)
    if action.type != of13.OFPAT_OUTPUT:
        raise _Foreign
    if action.port == of13.OFPP_CONTROLLER:
        return ToController()
    if action.port > of13.OFPP_MAX:
        raise _Foreign
    return Output(action.port)


def _group(entry: Any) -> Group:
    actions = [bucket.actions for bucket in entry.buckets]
    if entry.type != of13.OFPGT_ALL or any(len(of) != 1 or of[0].type != of13.OFPAT_OUTPUT for of in actions):
        raise _Foreign
    return Group(entry.group_id, tuple(sorted(action.port for (action,) in actions)))
