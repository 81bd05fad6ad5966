"""What a switch is told to do, as values: flows, groups, their actions, and the commands that change them.

These values are what the controller plans, what ``openflow13`` turns into OpenFlow 1.3 messages, what the dump of a
real switch is parsed back into, what the proof walks over, and what the virtual-time switches execute.

A change is the ordered difference of two :class:`SwitchRules`: :func:`difference` never lets a flow point at a group
that is not there. Over many switches at once a change is safe in two steps, see :func:`common`.
"""

from __future__ import annotations

from dataclasses import dataclass

ETH_IPV4 = 0x0800
PROTO_IGMP = 2


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """Fields of a match; None is a wildcard. ``ipv4_dst`` is one address (no mask). OpenFlow 1.3 section 7.2.3."""

    eth_type: int | None = None
    ip_proto: int | None = None
    ipv4_dst: str | None = None
    in_port: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Output:
    """Send out of ``port``; a switch never sends a frame out of the port it came in by (OpenFlow 1.3, 4.5)."""

    port: int


@dataclass(frozen=True, slots=True, order=True)
class ToGroup:
    """Hand to group ``group_id``."""

    group_id: int


@dataclass(frozen=True, slots=True, order=True)
class ToController:
    """Hand the frame to the controller (only IGMP is ever handed up)."""


Action = Output | ToGroup | ToController


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow entry; no actions means drop."""

    priority: int
    match: Match
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of type ALL: each port gets one copy (OpenFlow 1.3 section 5.6.1). Ports are sorted."""

    group_id: int
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SwitchRules:
    """All that one switch holds."""

    flows: frozenset[Flow] = frozenset()
    groups: frozenset[Group] = frozenset()


@dataclass(frozen=True, slots=True)
class Clear:
    """Delete every flow and every group of the switch."""


@dataclass(frozen=True, slots=True)
class AddGroup:
    """Create a group; a switch that has one of this id answers GROUP_EXISTS."""

    group: Group


@dataclass(frozen=True, slots=True)
class ModifyGroup:
    """Replace the buckets of a group in place; flows that point at it stay."""

    group: Group


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete a group (and, by OpenFlow 1.3 section 6.5, every flow that still points at it)."""

    group_id: int


@dataclass(frozen=True, slots=True)
class AddFlow:
    """Create a flow; one of the same priority and match is replaced."""

    flow: Flow


@dataclass(frozen=True, slots=True)
class ModifyFlow:
    """Replace the actions of the flow with exactly this priority and match; its counters stay."""

    flow: Flow


@dataclass(frozen=True, slots=True)
class DeleteFlow:
    """Delete the flow with exactly this priority and match."""

    priority: int
    match: Match


@dataclass(frozen=True, slots=True)
class Barrier:
    """Finish everything before this, then answer (OpenFlow 1.3 section 7.3.8).

    ``generation`` is that of the plan which is complete with the answer; 0 for a barrier that only keeps the order.
    """

    generation: int = 0


@dataclass(frozen=True, slots=True)
class AskHosts:
    """Send the hosts at these ports a query for all of their memberships; the switch does no more than hand it out."""

    ports: tuple[int, ...]


Command = Clear | AddGroup | ModifyGroup | DeleteGroup | AddFlow | ModifyFlow | DeleteFlow | AskHosts | Barrier


def difference(old: SwitchRules, new: SwitchRules) -> tuple[Command, ...]:
    """Commands that turn ``old`` into ``new``, in an order in which no flow ever points at a missing group.

    Groups are added and modified, then flows added and modified and deleted, then groups deleted, with barriers
    between. What is in both is left alone. Equal rules give no commands.
    """
    old_groups = {group.group_id: group for group in old.groups}
    new_groups = {group.group_id: group for group in new.groups}
    old_flows = {(flow.priority, flow.match): flow for flow in old.flows - new.flows}
    new_flows = {(flow.priority, flow.match): flow for flow in new.flows - old.flows}
    groups_first: list[Command] = [
        *(AddGroup(new_groups[i]) for i in sorted(new_groups.keys() - old_groups.keys())),
        *(
            ModifyGroup(new_groups[i])
            for i in sorted(new_groups.keys() & old_groups.keys())
            if new_groups[i] != old_groups[i]
        ),
    ]
    flows: list[Command] = [
        *(AddFlow(flow) for key, flow in _in_order(new_flows) if key not in old_flows),
        *(ModifyFlow(flow) for key, flow in _in_order(new_flows) if key in old_flows),
        *(DeleteFlow(*key) for key, _ in _in_order(old_flows) if key not in new_flows),
    ]
    groups_last: list[Command] = [DeleteGroup(i) for i in sorted(old_groups.keys() - new_groups.keys())]
    return _with_barriers_between(groups_first, flows, groups_last)


def common(old: SwitchRules, new: SwitchRules) -> SwitchRules:
    """What both ``old`` and ``new`` forward: equal flows, groups of the same id reduced to their common ports.

    Flows that drop are kept from both, since what either drops is not common. The intermediate step of a change that
    takes ports away at one switch and adds them at another. While it is being carried out every switch holds a part of
    the old forwarding; afterwards, a part of the new one. Parts of one tree neither loop nor duplicate, so a mixture of
    the two trees, which can do both, never exists.
    """
    remaining = {group.group_id: group for group in old.groups}
    return SwitchRules(
        flows=(old.flows & new.flows) | {flow for flow in old.flows | new.flows if not flow.actions},
        groups=frozenset(
            Group(group.group_id, tuple(port for port in group.ports if port in remaining[group.group_id].ports))
            for group in new.groups
            if group.group_id in remaining
        ),
    )


def only_grows(old: SwitchRules, new: SwitchRules) -> bool:
    """Whether ``new`` forwards all that ``old`` does, so that the change takes nothing away."""
    ports = {group.group_id: set(group.ports) for group in new.groups}
    return all(flow in new.flows for flow in old.flows if flow.actions) and all(
        ports.get(group.group_id, set()).issuperset(group.ports) for group in old.groups
    )


def _in_order(flows: dict[tuple[int, Match], Flow]) -> list[tuple[tuple[int, Match], Flow]]:
    """Highest priority first, then by match, so that the same plan always reads alike."""
    return sorted(flows.items(), key=lambda item: (-item[0][0], repr(item[0][1])))


def _with_barriers_between(*stages: list[Command]) -> tuple[Command, ...]:
    commands: list[Command] = []
    for stage in stages:
        commands += [Barrier(), *stage] if commands and stage else stage
    return tuple(commands)
