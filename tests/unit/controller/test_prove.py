from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from controller.forwarding import FrameClass, RuleError, decide
from controller.live import Live, link_ends, switch_ends
from controller.plan import IGMP_UP, TABLE_MISS, UNICAST, make_plan
from controller.prove import compare, prove, prove_igmp, prove_multicast, prove_silence, prove_unicast
from controller.rules import Flow, Group, Match, Output, SwitchRules, ToController, ToGroup
from topo.fabric import Fabric

G, OTHER, THIRD = "239.1.1.1", "239.1.1.2", "239.1.1.3"
Rules = dict[str, SwitchRules]


def planned(fabric: Fabric, **groups: list[str]) -> Rules:
    members = {
        address: groups[name] for name, address in (("g", G), ("other", OTHER), ("third", THIRD)) if name in groups
    }
    return make_plan(Live(fabric), members, {address: slot for slot, address in enumerate(members)}).rules


def change(rules: Rules, switch: str, group: Callable[[Group], Group]) -> Rules:
    """The rules with group 1 of ``switch`` changed."""
    held = rules[switch]
    return rules | {switch: replace(held, groups=frozenset(group(g) if g.group_id == 1 else g for g in held.groups))}


def without_port(lost: int, group: Group) -> Group:
    return replace(group, ports=tuple(port for port in group.ports if port != lost))


def without(rules: Rules, switch: str, *flows: Flow) -> Rules:
    assert rules[switch].flows.issuperset(flows)
    return rules | {switch: replace(rules[switch], flows=rules[switch].flows - set(flows))}


def with_flow(rules: Rules, switch: str, flow: Flow) -> Rules:
    return rules | {switch: replace(rules[switch], flows=rules[switch].flows | {flow})}


def flow_to(rules: Rules, switch: str, address: str) -> Flow:
    return next(f for f in rules[switch].flows if f.match.ipv4_dst == address and f.match.in_port is None)


def test_the_plan_of_every_fabric_is_proven(fabric: Fabric) -> None:
    hosts = list(fabric.host)
    rng = random.Random(len(hosts))
    groups = {G: hosts, OTHER: hosts[:2], THIRD: rng.sample(hosts, (len(hosts) + 1) // 2)}
    plan = make_plan(Live(fabric), groups, {G: 0, OTHER: 1, THIRD: 2})
    assert prove(fabric, plan.rules, groups) == []
    assert compare(plan.rules, plan.rules) == []


# Mistakes by name. Each must be reported with the switch and the rule.


def test_a_missing_bucket_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    for switch, lost in (("c0", 2), ("a00", 2), ("e31", 1), ("e00", 3)):
        broken = change(rules, switch, partial(without_port, lost))
        problems = prove_multicast(k4, broken, G, k4.host)
        assert [p for p in problems if p.startswith(f"{switch}: ") and "not reached" in p], problems
        assert all("priority=200,ip,nw_dst=239.1.1.1 actions=group:1" in p for p in problems)
        assert len(problems) == 1


def test_a_bucket_to_a_host_that_is_no_member_is_reported(k4: Fabric) -> None:
    broken = change(planned(k4, g=["h1", "h3"]), "e01", lambda g: replace(g, ports=(*g.ports, 2)))
    (problem,) = prove_multicast(k4, broken, G, ["h1", "h3"])
    assert problem.startswith("e01: priority=200,ip,nw_dst=239.1.1.1 actions=group:1, group 1 (ports 1,3,2): ")
    assert "reached, should not be: h4 from h1" in problem


def test_a_bucket_that_closes_a_loop_is_reported_with_both_ways(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    broken = change(rules, "e00", lambda g: replace(g, ports=(1, 2, 3, 4)))
    broken = change(broken | {"a01": rules["a00"]}, "a01", lambda g: g)
    problems = prove_multicast(k4, broken, G, k4.host)
    assert any("a loop, or a second way" in p and p.startswith("e00: ") for p in problems)


def test_a_bucket_to_a_switch_that_drops_is_reported(k4: Fabric) -> None:
    broken = change(planned(k4, g=list(k4.host)), "a00", lambda g: replace(g, ports=(*g.ports, 4)))
    problems = prove_multicast(k4, broken, G, k4.host)
    assert [p for p in problems if p.startswith("a00: ") and "sends to c1, which passes it on to nobody" in p], problems


def test_a_port_twice_is_reported(k4: Fabric) -> None:
    broken = change(planned(k4, g=list(k4.host)), "e10", lambda g: replace(g, ports=(1, 1, 2, 3)))
    (problem,) = prove_multicast(k4, broken, G, k4.host)
    assert "e10: " in problem
    assert "reached twice: h5 from" in problem


def test_a_port_that_leads_nowhere_is_reported(k4: Fabric) -> None:
    broken = change(planned(k4, g=list(k4.host)), "c0", lambda g: replace(g, ports=(*g.ports, 9)))
    (problem,) = prove_multicast(k4, broken, G, k4.host)
    assert "c0: " in problem
    assert "port 9 leads nowhere" in problem


def test_a_missing_group_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    broken = rules | {"a10": replace(rules["a10"], groups=frozenset())}
    problems = prove_multicast(k4, broken, G, k4.host)
    assert any(p.startswith("a10: ") and "names group 1, which is missing" in p for p in problems)


def test_a_missing_flow_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    problems = prove_multicast(k4, without(rules, "c0", flow_to(rules, "c0", G)), G, k4.host)
    assert any(p.startswith("a00: ") and "sends to c0, which passes it on to nobody" in p for p in problems)
    assert any(p.startswith("c0: priority=0 actions=drop: IPv4 to 239.1.1.1 not reached") for p in problems)


def test_a_second_flow_that_disagrees_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    broken = with_flow(rules, "e00", Flow(200, flow_to(rules, "e00", G).match, (Output(1),)))
    problems = prove_multicast(k4, broken, G, k4.host)
    assert any(p.startswith("e00: flows of one priority disagree") for p in problems)


def test_a_priority_inversion_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    miss = Flow(TABLE_MISS, Match(), ())
    broken = with_flow(without(rules, "a20", miss), "a20", replace(miss, priority=250))
    problems = prove_multicast(k4, broken, G, k4.host)
    assert any(p.startswith("a20: priority=250 actions=drop") for p in problems)


def test_a_wrong_unicast_port_is_reported(k4: Fabric) -> None:
    rules = planned(k4)
    wrong = flow_to(rules, "a00", k4.host["h3"].ip)
    broken = with_flow(without(rules, "a00", wrong), "a00", replace(wrong, actions=(Output(1),)))
    problems = prove_unicast(k4, broken)
    assert any(p.startswith("a00: priority=100,ip,nw_dst=10.0.1.2 actions=output:1") for p in problems), problems
    assert prove_unicast(k4, broken, pairs=[("h1", "h2")]) == []


def test_unicast_to_the_wrong_host_is_reported(k4: Fabric) -> None:
    rules = planned(k4)
    wrong = flow_to(rules, "e00", k4.host["h2"].ip)
    broken = with_flow(without(rules, "e00", wrong), "e00", replace(wrong, actions=(Output(1),)))
    problems = prove_unicast(k4, broken)
    assert any("e00: " in p and "reached, should not be: h1 from h3" in p for p in problems)


def test_igmp_that_is_not_handed_up_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    up = Flow(IGMP_UP, Match(eth_type=0x0800, ip_proto=2, in_port=2), (ToController(),))
    (problem,) = {p.split(":")[0] for p in prove_igmp(k4, without(rules, "e11", up), [G])}
    assert problem == "e11"
    both = with_flow(without(rules, "e11", up), "e11", replace(up, actions=(ToController(), Output(3))))
    assert any("forwarded, should end here: from h8" in p for p in prove_igmp(k4, both, [G]))


def test_data_that_is_handed_up_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    flow = flow_to(rules, "e00", G)
    broken = with_flow(without(rules, "e00", flow), "e00", replace(flow, actions=(*flow.actions, ToController())))
    assert any("e00: " in p and "handed to the controller" in p for p in prove_multicast(k4, broken, G, k4.host))


def test_what_should_die_at_the_first_switch_and_does_not_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    for flow in (
        Flow(50, Match(eth_type=0x0806), (Output(1),)),
        Flow(50, Match(), (Output(3),)),
        Flow(50, Match(eth_type=0x0800, ipv4_dst="10.9.9.9"), (Output(3),)),
        Flow(50, Match(eth_type=0x0800, ip_proto=89), (Output(3),)),
        Flow(50, Match(in_port=2), (ToController(),)),
    ):
        problems = prove_silence(k4, with_flow(rules, "e20", flow), [G])
        assert problems, flow
        assert all(p.startswith("e20: priority=50") for p in problems)


def test_a_group_that_nobody_asked_for_is_reported(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host), other=["h1", "h2"])
    assert prove_silence(k4, rules, [G, OTHER]) == []
    assert any("nw_dst=239.1.1.2" in p for p in prove_silence(k4, rules, [G]))


def test_many_examples_of_one_mistake_are_one_line(k4: Fabric) -> None:
    broken = change(planned(k4, g=list(k4.host)), "c0", lambda g: replace(g, ports=g.ports[1:]))
    (problem,) = prove_multicast(k4, broken, G, k4.host)
    assert problem.endswith("(and 47 more)"), "4 hosts of pod 0, from the 12 others"


# Failures that are known.


def test_with_links_down_the_plan_is_proven_for_whoever_is_connected(k4: Fabric) -> None:
    everyone = list(k4.host)
    for down in (
        switch_ends(k4, "c0"),
        switch_ends(k4, "a00"),
        switch_ends(k4, "e00"),
        link_ends(k4, "h1", "e00"),
        link_ends(k4, "e00", "a00") | link_ends(k4, "a00", "c0"),
    ):
        rules = make_plan(Live(k4, down), {G: everyone}, {G: 0}).rules
        assert prove(k4, rules, {G: everyone}, down) == []


def test_rules_that_send_into_a_dead_link_are_reported(k4: Fabric) -> None:
    down = link_ends(k4, "a00", "c0")
    rules = planned(k4, g=list(k4.host))
    problems = [*prove_multicast(k4, rules, G, k4.host, down), *prove_unicast(k4, rules, down=down)]
    assert any(p.startswith("a00: ") and "port 3 leads nowhere" in p for p in problems)
    assert any(p.startswith("c0: ") and "port 1 leads nowhere" in p for p in problems)


# Mistakes by chance: whatever changes who gets what is noticed, and its switch is named.


def mutate(rng: random.Random, fabric: Fabric, rules: Rules) -> tuple[str, Rules]:
    """One random mistake at one switch."""
    switch = rng.choice(sorted(rules))
    held = rules[switch]
    ports = [*fabric.ports[switch], 99]
    flows = sorted(held.flows, key=repr)
    victim = rng.choice(flows)
    fewer = held.flows - {victim}
    mutations: list[SwitchRules] = [
        replace(held, flows=fewer),
        replace(held, flows=fewer | {replace(victim, actions=(Output(rng.choice(ports)),))}),
        replace(held, flows=fewer | {replace(victim, actions=(*victim.actions, Output(rng.choice(ports))))}),
        replace(held, flows=fewer | {replace(victim, actions=(ToGroup(rng.choice([1, 2, 9])),))}),
        replace(held, flows=fewer | {replace(victim, priority=rng.choice([0, 50, 150, 250, 350, 450]))}),
        replace(held, flows=fewer | {replace(victim, match=replace(victim.match, in_port=rng.choice(ports)))}),
        replace(held, flows=fewer | {replace(victim, match=replace(victim.match, ip_proto=rng.choice([2, 6, 17])))}),
        replace(held, flows=fewer | {replace(victim, match=replace(victim.match, ipv4_dst=rng.choice([None, G])))}),
        replace(held, flows=held.flows | {Flow(victim.priority, Match(), (Output(rng.choice(ports)),))}),
    ]
    if held.groups:
        group = rng.choice(sorted(held.groups, key=lambda g: g.group_id))
        rest = held.groups - {group}
        dropped = rng.choice(group.ports)
        mutations += [
            replace(held, groups=rest),
            replace(held, groups=rest | {Group(group.group_id, tuple(p for p in group.ports if p != dropped))}),
            replace(held, groups=rest | {Group(group.group_id, (*group.ports, rng.choice(ports)))}),
            replace(held, groups=rest | {Group(group.group_id, (rng.choice(ports), *group.ports[1:]))}),
        ] * 2
    return switch, rules | {switch: rng.choice(mutations)}


def behaviour(fabric: Fabric, rules: Rules, groups: dict[str, list[str]]) -> dict[tuple[str, FrameClass], object]:
    """Who gets how many copies of what from whom, worked out without the proof: a naive flood with a bound."""
    addresses = [*groups, *(host.ip for host in fabric.hosts), "224.0.0.22", "239.9.9.9"]
    frames = [FrameClass(0x0800, protocol, ip) for protocol in (2, 6, 17, 89) for ip in addresses]
    frames += [FrameClass(0x0806), FrameClass(0x86DD)]
    return {(h, f): _flood(fabric, rules, h, f) for h in fabric.host for f in frames}


def _flood(fabric: Fabric, rules: Rules, sender: str, frame: FrameClass) -> object:
    got: Counter[str] = Counter()
    frontier = [(fabric.edge_of[sender], fabric.port_to[fabric.edge_of[sender]][sender])]
    for _ in range(12):
        following = []
        for switch, in_port in frontier:
            try:
                decision = decide(rules[switch], frame, in_port)
            except RuleError:
                return "undefined"
            got["controller"] += decision.to_controller
            for port in decision.ports:
                peer = fabric.ports[switch].get(port, "nobody")
                got[peer] += peer in fabric.host or peer == "nobody"
                if peer in fabric.switch:
                    following.append((peer, fabric.port_to[peer][switch]))
        frontier = following[:64]
    return "loops" if frontier else dict(+got)


@pytest.mark.parametrize("seed", range(60))
def test_a_random_mistake_that_changes_who_gets_what_is_noticed(k4: Fabric, seed: int) -> None:
    rng = random.Random(seed)
    groups = {G: list(k4.host), OTHER: rng.sample(list(k4.host), 5)}
    rules = make_plan(Live(k4), groups, {G: 0, OTHER: 1}).rules
    before = behaviour(k4, rules, groups)
    for _ in range(4):
        switch, broken = mutate(rng, k4, rules)
        if broken != rules:
            assert any(line.startswith(f"{switch}: ") for line in compare(rules, broken))
        if behaviour(k4, broken, groups) != before:
            problems = prove(k4, broken, groups)
            assert problems, (switch, broken[switch].flows ^ rules[switch].flows, broken[switch].groups)
            assert any(switch in line for line in problems)
        elif broken == rules:
            assert prove(k4, broken, groups) == []


def test_rules_that_were_not_read_and_rules_too_many_are_differences(k4: Fabric) -> None:
    rules = planned(k4, g=list(k4.host))
    found = {switch: held for switch, held in rules.items() if switch != "c1"}
    extra = Flow(UNICAST, Match(eth_type=0x0800, ipv4_dst="10.9.9.9"), (Output(1),))
    lines = compare(rules, with_flow(change(found, "c0", lambda g: replace(g, ports=(1,))), "e00", extra))
    assert lines == [
        "c0: missing: group 1 (ports 1,2,3,4)",
        "c0: not in the plan: group 1 (ports 1)",
        "c1: its rules have not been read",
        "e00: not in the plan: priority=100,ip,nw_dst=10.9.9.9 actions=output:1",
    ]
