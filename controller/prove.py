"""Proof that rules do what they should: every frame of every sender, walked through the fabric.

The rules may come from the plan or, better, from what the switches themselves say (:mod:`controller.dumps`). The proof
knows nothing of trees and routes: it forwards frames switch by switch and looks at who gets them. All functions return
problems, one line each, that name the switch, its rule and an example; no problems, no lines.

``down`` are link ends that are known to be down: frames must not go there, and hosts that are cut off are not expected
to be reached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from controller.forwarding import FrameClass, describe_flow, describe_group
from controller.live import End, Live
from controller.rules import ETH_IPV4, PROTO_IGMP, Flow, Group, SwitchRules
from controller.walk import Walks
from topo.fabric import Fabric

NOTHING_DOWN: frozenset[End] = frozenset()

_PROTOCOLS = (17, 6, 1, *range(143, 253))
"""IP protocols to walk for those that no rule names: UDP, TCP, ICMP, then unassigned ones."""

_FOREIGN_ETHERTYPES = (0x0806, 0x86DD, 0x88CC)
"""ARP, IPv6, LLDP."""

_FOREIGN_ADDRESSES = ("255.255.255.255", "224.0.0.251", "239.255.255.250", "198.51.100.1")
"""Broadcast, mDNS, SSDP and an address for documentation (RFC 5737)."""


def compare(planned: Mapping[str, SwitchRules], found: Mapping[str, SwitchRules]) -> list[str]:
    """Differences between the plan and what the switches hold: one line for each rule that is missing or too many."""
    problems: list[str] = []
    for switch in sorted(planned.keys() | found.keys()):
        if switch not in found:
            problems.append(f"{switch}: its rules have not been read")
            continue
        want, have = planned.get(switch, SwitchRules()), found[switch]
        problems += [f"{switch}: missing: {_describe(rule)}" for rule in _sorted(want.flows - have.flows)]
        problems += [f"{switch}: not in the plan: {_describe(rule)}" for rule in _sorted(have.flows - want.flows)]
        problems += [f"{switch}: missing: {_describe(rule)}" for rule in _sorted(want.groups - have.groups)]
        problems += [f"{switch}: not in the plan: {_describe(rule)}" for rule in _sorted(have.groups - want.groups)]
    return problems


def prove(
    fabric: Fabric,
    rules: Mapping[str, SwitchRules],
    groups: Mapping[str, Collection[str]],
    down: frozenset[End] = NOTHING_DOWN,
) -> list[str]:
    """Everything: each group from each sender, each pair of hosts, IGMP, and that nothing else is forwarded."""
    return [
        *chain.from_iterable(prove_multicast(fabric, rules, group, groups[group], down) for group in groups),
        *prove_unicast(fabric, rules, down=down),
        *prove_igmp(fabric, rules, groups),
        *prove_silence(fabric, rules, groups),
    ]


def prove_multicast(
    fabric: Fabric,
    rules: Mapping[str, SwitchRules],
    group_ip: str,
    members: Collection[str],
    down: frozenset[End] = NOTHING_DOWN,
) -> list[str]:
    """Whoever sends to the group, member or not: every other member gets one copy, nobody else any, nothing loops."""
    walks = Walks(Live(fabric, down), rules)
    for protocol in _protocols(rules):
        for sender in walks.attached:
            walks.deliver(sender, FrameClass(ETH_IPV4, protocol, group_ip), members)
    return walks.problems()


def prove_unicast(
    fabric: Fabric,
    rules: Mapping[str, SwitchRules],
    pairs: Iterable[tuple[str, str]] | None = None,
    down: frozenset[End] = NOTHING_DOWN,
) -> list[str]:
    """Frames of each (sender, receiver) reach the receiver once and nobody else. ``pairs`` None: every two hosts."""
    walks = Walks(Live(fabric, down), rules)
    if pairs is None:
        pairs = ((one, other) for one in walks.attached for other in walks.attached if one != other)
    protocols = _protocols(rules)
    for sender, receiver in pairs:
        for protocol in protocols:
            walks.deliver(sender, FrameClass(ETH_IPV4, protocol, fabric.host[receiver].ip), {receiver})
    return walks.problems()


def prove_igmp(fabric: Fabric, rules: Mapping[str, SwitchRules], groups: Iterable[str] = ()) -> list[str]:
    """Every host's IGMP, to whatever address, is handed to the controller and sent nowhere."""
    walks = Walks(Live(fabric), rules)
    for address in ("224.0.0.22", "224.0.0.2", *groups, *fabric.edge_of):
        destination = fabric.host[address].ip if address in fabric.host else address
        for host in fabric.host:
            walks.end_at_edge(host, FrameClass(ETH_IPV4, PROTO_IGMP, destination), to_controller=True)
    return walks.problems()


def prove_silence(fabric: Fabric, rules: Mapping[str, SwitchRules], groups: Collection[str] = ()) -> list[str]:
    """What is neither to a host nor to one of ``groups`` ends at the sender's switch and troubles no controller.

    Tried: foreign ethertypes, broadcast, unknown addresses, and every ethertype and address that any rule names.
    """
    walks = Walks(Live(fabric), rules)
    flows = {flow for held in rules.values() for flow in held.flows}
    known = {host.ip for host in fabric.hosts} | set(groups)
    ethertypes = {*_FOREIGN_ETHERTYPES, *(f.match.eth_type for f in flows if f.match.eth_type is not None)}
    addresses = {*_FOREIGN_ADDRESSES, *(f.match.ipv4_dst for f in flows if f.match.ipv4_dst is not None)}
    frames = [FrameClass(ethertype) for ethertype in sorted(ethertypes - {ETH_IPV4})]
    frames += [FrameClass(ETH_IPV4, p, ip) for p in _protocols(rules) for ip in sorted(addresses - known)]
    for frame in frames:
        for host in fabric.host:
            walks.end_at_edge(host, frame, to_controller=False)
    return walks.problems()


def _protocols(rules: Mapping[str, SwitchRules]) -> list[int]:
    """IP protocols that stand for all but IGMP: those that rules name, and one that none names."""
    named = {flow.match.ip_proto for held in rules.values() for flow in held.flows} - {None, PROTO_IGMP}
    other = next(protocol for protocol in _PROTOCOLS if protocol not in named)
    return [other, *sorted(protocol for protocol in named if protocol is not None)]


def _describe(rule: Flow | Group) -> str:
    return describe_flow(rule) if isinstance(rule, Flow) else describe_group(rule)


def _sorted(rules: Iterable[Flow] | Iterable[Group]) -> list[Flow | Group]:
    return sorted(rules, key=_describe)
