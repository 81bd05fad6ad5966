"""The whole plan: from what is alive and who is a member to the rules of every switch.

Every switch holds, by falling priority:

====================  ===========================================  ==================================================
priority              match                                        action
====================  ===========================================  ==================================================
IGMP_UP (400)         IGMP from a host's port                      to the controller
IGMP_DROP (300)       IGMP from anywhere                           none: reports are never forwarded
STRAY (250)           group's address, and a port to a switch      none: the tree sends nothing this way
                      that the group's tree does not use
MULTICAST (200)       IPv4 to the address of a group               in the tree: the group; outside: towards the tree
UNICAST (100)         IPv4 to the address of a host                out of the port that leads to it
TABLE_MISS (0)        anything                                     none
====================  ===========================================  ==================================================

The switches know no other way to forward: nothing is flooded or learned, so ARP, IPv6 and groups without members die
at the first switch, and loops in the fabric do no harm. A group's frame is taken only from where its tree sends (a
reverse path check, as bidirectional multicast routing has it, RFC 5015 section 3.2): what was under way over a link
when the tree moved away from it ends at the next switch, and does not enter the new tree by a side door.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from controller.live import Live
from controller.routes import unicast_routes
from controller.rules import (
    ETH_IPV4,
    PROTO_IGMP,
    Action,
    Flow,
    Group,
    Match,
    Output,
    SwitchRules,
    ToController,
    ToGroup,
)
from controller.trees import Tree, plan_trees
from topo.fabric import Fabric

IGMP_UP = 400
IGMP_DROP = 300
STRAY = 250
MULTICAST = 200
UNICAST = 100
TABLE_MISS = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules of every switch and the trees that they come from, by the group's address."""

    rules: dict[str, SwitchRules]
    trees: dict[str, Tree]


def group_id(slot: int) -> int:
    """The id, on every switch, of the OpenFlow group of the multicast group numbered ``slot`` (ids count from 1)."""
    return slot + 1


def assign_slots(groups: Iterable[str], previous: Mapping[str, int]) -> dict[str, int]:
    """A number for each group: those that have one keep it, new ones take the smallest free, in the order given.

    So a group's tree does not move when others come and go, and groups that come together are spread evenly.
    """
    wanted = list(groups)
    slots = {group: previous[group] for group in wanted if group in previous}
    taken = set(slots.values())
    free = (number for number in count() if number not in taken)
    return slots | {group: next(free) for group in wanted if group not in slots}


def fixed_flows(live: Live) -> dict[str, frozenset[Flow]]:
    """The flows of every switch that do not depend on groups."""
    routes = unicast_routes(live)
    return {
        switch: frozenset({*_igmp_flows(live.fabric, switch), *_unicast_flows(table), Flow(TABLE_MISS, Match(), ())})
        for switch, table in routes.items()
    }


def make_plan(
    live: Live,
    members: Mapping[str, Collection[str]],
    slots: Mapping[str, int],
    fixed: Mapping[str, frozenset[Flow]] | None = None,
) -> Plan:
    """The plan for these groups (address -> hosts); ``fixed`` is what :func:`fixed_flows` gave for this ``live``."""
    flows = {switch: set(base) for switch, base in (fixed or fixed_flows(live)).items()}
    groups: dict[str, set[Group]] = {switch: set() for switch in flows}
    trees = plan_trees(live, members, slots)
    for address, tree in trees.items():
        number = group_id(slots[address])
        for switch, ports in tree.ports.items():
            groups[switch].add(Group(number, ports))
            flows[switch].add(_multicast_flow(address, ToGroup(number)))
        for switch, port in tree.feeders.items():
            flows[switch].add(_multicast_flow(address, Output(port)))
        for switch, strays in _stray_ports(live, tree).items():
            flows[switch].update(_stray_flow(address, port) for port in strays)
    rules = {switch: SwitchRules(frozenset(flows[switch]), frozenset(groups[switch])) for switch in flows}
    return Plan(rules, trees)


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """A multicast group as one switch's rules tell of it: its number, and the switch's hosts that are members."""

    address: str
    slot: int
    hosts: tuple[str, ...]


def planned_groups(fabric: Fabric, switch: str, rules: SwitchRules) -> list[PlannedGroup]:
    """The groups that ``rules``, once planned for ``switch``, were planned for: :func:`make_plan` read backwards."""
    hosts = {port: peer for port, peer in fabric.ports[switch].items() if peer in fabric.host}
    ports = {group.group_id: group.ports for group in rules.groups}
    return [
        PlannedGroup(
            address=str(flow.match.ipv4_dst),
            slot=action.group_id - 1,
            hosts=tuple(peer for port, peer in hosts.items() if port in ports[action.group_id]),
        )
        for flow in sorted(rules.flows, key=lambda flow: str(flow.match.ipv4_dst))
        for action in flow.actions
        if isinstance(action, ToGroup)
    ]


def _igmp_flows(fabric: Fabric, switch: str) -> list[Flow]:
    up = [
        Flow(IGMP_UP, Match(eth_type=ETH_IPV4, ip_proto=PROTO_IGMP, in_port=port), (ToController(),))
        for port, peer in fabric.ports[switch].items()
        if peer in fabric.host
    ]
    return [*up, Flow(IGMP_DROP, Match(eth_type=ETH_IPV4, ip_proto=PROTO_IGMP), ())]


def _unicast_flows(table: Mapping[str, int]) -> list[Flow]:
    return [Flow(UNICAST, Match(eth_type=ETH_IPV4, ipv4_dst=ip), (Output(port),)) for ip, port in table.items()]


def _stray_ports(live: Live, tree: Tree) -> dict[str, list[int]]:
    """Of every switch that forwards the group, the ports to other switches, dead or alive, that no frame comes by."""
    fed = {live.far_end[feeder] for feeder in tree.feeders.items()}
    return {
        switch: [
            port
            for port, peer in live.fabric.ports[switch].items()
            if peer in live.fabric.switch and port not in tree.ports.get(switch, ()) and (switch, port) not in fed
        ]
        for switch in (*tree.ports, *tree.feeders)
    }


def _stray_flow(address: str, port: int) -> Flow:
    return Flow(STRAY, Match(eth_type=ETH_IPV4, ipv4_dst=address, in_port=port), ())


def _multicast_flow(address: str, action: Action) -> Flow:
    return Flow(MULTICAST, Match(eth_type=ETH_IPV4, ipv4_dst=address), (action,))
