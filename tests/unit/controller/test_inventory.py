"""What switches say they hold, in Ryu's own messages, is the rules that they were given; all else is foreign."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller.inventory import Inventory, questions
from controller.live import Live
from controller.openflow13 import encode
from controller.plan import make_plan
from controller.rules import AddFlow, AddGroup, Flow, Group, Match, Output, SwitchRules, ToGroup
from tests.fake_openflow import PROTOCOL
from topo.fabric import Fabric

APPLY = of13.OFPIT_APPLY_ACTIONS
HELD = SwitchRules(
    frozenset({Flow(200, Match(eth_type=0x0800, ipv4_dst="239.1.1.1"), (ToGroup(1),)), Flow(0, Match(), ())}),
    frozenset({Group(1, (1, 3))}),
)


def flow_stats(flow: Flow, **changes: Any) -> Any:
    """An entry of a flow stats reply: the flow as it came out of a message's bytes, and ``changes`` to it."""
    (mod,) = encode(PROTOCOL, AddFlow(flow))
    mod.set_xid(1)
    mod.serialize()
    read = parser13.OFPFlowMod.parser(PROTOCOL, 4, of13.OFPT_FLOW_MOD, len(mod.buf), 1, bytes(mod.buf))
    found = {"match": read.match, "instructions": read.instructions, "table_id": 0, "idle_timeout": 0} | changes
    return parser13.OFPFlowStats(**{"priority": flow.priority, "hard_timeout": 0} | found)


def group_stats(group: Group, **changes: Any) -> Any:
    (mod,) = encode(PROTOCOL, AddGroup(group))
    return parser13.OFPGroupDescStats(
        **{"type_": of13.OFPGT_ALL, "group_id": group.group_id, "buckets": mod.buckets} | changes
    )


def reply(kind: int, body: list[Any], *, more: bool = False) -> Any:
    return SimpleNamespace(type=kind, flags=of13.OFPMPF_REPLY_MORE if more else 0, body=body)


def answers(rules: SwitchRules, *strangers: Any) -> list[Any]:
    """A switch's answers to both questions, the flows in two parts; ``strangers`` are entries besides."""
    groups = [entry for entry in strangers if isinstance(entry, parser13.OFPGroupDescStats)]
    flows = [entry for entry in strangers if not isinstance(entry, parser13.OFPGroupDescStats)]
    return [
        reply(of13.OFPMP_FLOW, [flow_stats(flow) for flow in rules.flows], more=True),
        reply(of13.OFPMP_FLOW, flows),
        reply(of13.OFPMP_GROUP_DESC, [*map(group_stats, rules.groups), *groups]),
    ]


def taken_in(messages: list[Any]) -> Inventory:
    inventory = Inventory()
    assert [inventory.add(message) for message in messages] == [False] * (len(messages) - 1) + [True]
    return inventory


def test_every_rule_of_every_plan_is_read_back(fabric: Fabric) -> None:
    hosts = list(fabric.host)
    groups = {"239.1.1.1": hosts, "239.1.1.2": hosts[::2]}
    plan = make_plan(Live(fabric), groups, {group: slot for slot, group in enumerate(groups)})
    for rules in list(plan.rules.values())[:5]:
        assert taken_in(answers(rules)).rules == rules


def test_it_is_complete_with_the_last_part_of_the_last_answer_in_whatever_order() -> None:
    flows, rest, groups = answers(HELD)
    assert taken_in([groups, flows, rest]).rules == HELD
    assert taken_in([flows, groups, rest]).rules == HELD


def test_both_questions_are_for_everything() -> None:
    asked = questions(PROTOCOL)
    assert [message.type for message in asked] == [of13.OFPMP_FLOW, of13.OFPMP_GROUP_DESC]
    assert asked[0].table_id == of13.OFPTT_ALL
    assert (asked[0].out_port, asked[0].out_group) == (of13.OFPP_ANY, of13.OFPG_ANY)


PLAIN = Flow(7, Match(eth_type=0x0800, ipv4_dst="10.0.0.2"), (Output(1),))


@pytest.mark.parametrize(
    "stranger",
    [
        flow_stats(PLAIN, table_id=1),
        flow_stats(PLAIN, idle_timeout=10),
        flow_stats(PLAIN, hard_timeout=10),
        flow_stats(PLAIN, match=parser13.OFPMatch(eth_type=0x0800, ipv4_dst=("10.0.0.0", "255.0.0.0"))),
        flow_stats(PLAIN, match=parser13.OFPMatch(eth_dst="02:00:00:00:00:01")),
        flow_stats(PLAIN, instructions=[parser13.OFPInstructionGotoTable(1)]),
        flow_stats(PLAIN, instructions=[parser13.OFPInstructionActions(APPLY, [parser13.OFPActionPopVlan()])]),
        flow_stats(
            PLAIN, instructions=[parser13.OFPInstructionActions(APPLY, [parser13.OFPActionOutput(of13.OFPP_NORMAL)])]
        ),
        group_stats(Group(2, (1,)), type_=of13.OFPGT_SELECT),
        group_stats(Group(2, (1,)), buckets=[parser13.OFPBucket(actions=[])]),
        group_stats(Group(2, (1,)), buckets=[parser13.OFPBucket(actions=[parser13.OFPActionGroup(1)])]),
    ],
    ids=str,
)
def test_one_stranger_makes_all_that_a_switch_holds_unknown(stranger: Any) -> None:
    assert taken_in(answers(HELD, stranger)).rules is None
