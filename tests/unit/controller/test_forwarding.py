from __future__ import annotations

import pytest

from controller.dumps import parse_flows
from controller.forwarding import FrameClass, RuleError, decide, describe_flow, describe_group, forward, lookup
from controller.live import Live
from controller.plan import make_plan
from controller.rules import Flow, Group, Match, Output, SwitchRules, ToController, ToGroup
from topo.fabric import Fabric

IPV4, ARP, UDP, IGMP = 0x0800, 0x0806, 17, 2
GROUP = "239.1.1.1"


def rules(*flows: Flow, groups: tuple[Group, ...] = ()) -> SwitchRules:
    return SwitchRules(frozenset(flows), frozenset(groups))


def to_group(priority: int = 200) -> Flow:
    return Flow(priority, Match(eth_type=IPV4, ipv4_dst=GROUP), (ToGroup(1),))


def test_a_group_copies_to_all_its_ports_but_the_input_port() -> None:
    held = rules(to_group(), groups=(Group(1, (1, 2, 5)),))
    assert lookup(held, IPV4, UDP, GROUP, 2) == (1, 5)
    assert lookup(held, IPV4, UDP, GROUP, 3) == (1, 2, 5)


def test_an_output_to_the_input_port_is_no_output() -> None:
    held = rules(Flow(100, Match(eth_type=IPV4, ipv4_dst="10.0.0.2"), (Output(4),)))
    assert lookup(held, IPV4, UDP, "10.0.0.2", 4) == ()
    assert lookup(held, IPV4, UDP, "10.0.0.2", 3) == (4,)


def test_the_highest_priority_decides_wherever_it_stands() -> None:
    low = Flow(1, Match(), (Output(1),))
    held = rules(low, to_group(), groups=(Group(1, (7,)),))
    assert lookup(held, IPV4, UDP, GROUP, 3) == (7,)
    assert lookup(held, ARP, None, None, 3) == (1,)
    over = rules(Flow(300, Match(eth_type=IPV4), ()), to_group(), groups=(Group(1, (7,)),))
    assert lookup(over, IPV4, UDP, GROUP, 3) == ()


def test_every_field_of_a_match_counts() -> None:
    held = rules(Flow(400, Match(eth_type=IPV4, ip_proto=IGMP, in_port=1), (Output(9),)))
    assert lookup(held, IPV4, IGMP, GROUP, 1) == (9,)
    assert lookup(held, IPV4, IGMP, GROUP, 2) == ()
    assert lookup(held, IPV4, UDP, GROUP, 1) == ()
    assert lookup(held, ARP, None, None, 1) == ()


def test_no_match_and_no_rules_drop() -> None:
    assert lookup(rules(), IPV4, UDP, GROUP, 1) == ()
    assert decide(rules(to_group()), FrameClass(ARP), 1).flow is None


def test_what_goes_to_the_controller_leaves_by_no_port() -> None:
    held = rules(Flow(400, Match(eth_type=IPV4, ip_proto=IGMP), (ToController(),)))
    decision = decide(held, FrameClass(IPV4, IGMP, "224.0.0.22"), 1)
    assert (decision.ports, decision.to_controller) == ((), True)


def test_rules_without_a_meaning_are_an_error_that_names_them() -> None:
    with pytest.raises(RuleError, match=r"nw_dst=239.1.1.1 actions=group:1 names group 1, which is missing"):
        lookup(rules(to_group()), IPV4, UDP, GROUP, 1)
    with pytest.raises(RuleError, match=r"disagree: priority=200,ip actions=drop and priority=200,ip,nw_dst"):
        lookup(rules(to_group(), Flow(200, Match(eth_type=IPV4), ()), groups=(Group(1, ()),)), IPV4, UDP, GROUP, 1)
    with pytest.raises(RuleError, match="group 1 is there twice"):
        lookup(rules(to_group(), groups=(Group(1, (1,)), Group(1, (2,)))), IPV4, UDP, GROUP, 1)


def test_two_flows_that_agree_are_no_error() -> None:
    held = rules(to_group(), Flow(200, Match(ipv4_dst=GROUP), (ToGroup(1),)), groups=(Group(1, (3,)),))
    assert lookup(held, IPV4, UDP, GROUP, 1) == (3,)


def test_one_hop_gives_port_and_neighbour(k4: Fabric) -> None:
    plan = make_plan(Live(k4), {GROUP: ["h1", "h2", "h5"]}, {GROUP: 0})
    frame = FrameClass(IPV4, UDP, GROUP)
    assert forward(k4, plan.rules, "e00", 1, frame) == ((2, "h2"), (3, "a00"))
    assert forward(k4, plan.rules, "e00", 3, frame) == ((1, "h1"), (2, "h2"))
    assert forward(k4, plan.rules, "a00", 1, frame) == ((3, "c0"),)


def test_rules_are_described_in_the_words_of_ovs_ofctl() -> None:
    igmp = Flow(400, Match(eth_type=IPV4, ip_proto=IGMP, in_port=3), (ToController(),))
    assert describe_flow(igmp) == "priority=400,ip,in_port=3,nw_proto=2 actions=CONTROLLER:65535"
    odd = Flow(5, Match(eth_type=ARP), (Output(2), Output(3)))
    assert describe_flow(odd) == "priority=5,dl_type=0x0806 actions=output:2,output:3"
    assert describe_flow(Flow(0, Match(), ())) == "priority=0 actions=drop"
    for flow in (to_group(), igmp, odd):
        assert parse_flows(f" cookie=0x0, {describe_flow(flow)}") == {flow}
    assert describe_group(Group(1, (1, 2))) == "group 1 (ports 1,2)"
    assert describe_group(Group(2, ())) == "group 2 (ports none)"
