"""What a switch is told to do, as values: flows, groups and their actions.

These values are what the controller plans, what ``openflow13`` turns into OpenFlow 1.3 messages, what the dump of a
real switch is parsed back into, what the proof walks over, and what the virtual-time switches execute.
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
