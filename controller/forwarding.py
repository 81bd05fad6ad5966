"""What a switch with given rules does to a frame: the meaning of the rules, executed.

The proof walks the fabric with it, and the virtual-time network forwards by it. Frames are told apart by what the
rules can match: ethertype, IP protocol, IPv4 destination, input port (OpenFlow 1.3 section 5.3: the matching flow of
the highest priority decides; nothing matches, the frame is dropped).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from controller.rules import ETH_IPV4, Flow, Group, Match, Output, SwitchRules, ToController, ToGroup
from topo.fabric import Fabric


@dataclass(frozen=True, slots=True)
class FrameClass:
    """All frames that no rule can tell apart. ``ip_proto`` and ``ipv4_dst`` are None if it is not IPv4."""

    eth_type: int
    ip_proto: int | None = None
    ipv4_dst: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a frame: the flow that matched (None: no flow did), the group it named, where copies go out."""

    flow: Flow | None
    group: Group | None
    ports: tuple[int, ...]
    to_controller: bool


class RuleError(ValueError):
    """Rules without a meaning: two flows of one priority that disagree, or a flow that names a missing group."""


def lookup(
    rules: SwitchRules, eth_type: int, ip_proto: int | None, ipv4_dst: str | None, in_port: int
) -> tuple[int, ...]:
    """The ports that copies of the frame leave by, never ``in_port`` (OpenFlow 1.3 sections 4.5, 5.6.1).

    Raises RuleError as :func:`decide` does. Cheap enough to be called per frame (about a microsecond), and a pure
    function of hashable arguments for who wants to cache it.
    """
    return decide(rules, FrameClass(eth_type, ip_proto, ipv4_dst), in_port).ports


def forward(
    fabric: Fabric, rules: Mapping[str, SwitchRules], switch: str, in_port: int, frame: FrameClass
) -> tuple[tuple[int, str], ...]:
    """One hop: (port, neighbour behind it) for every copy that leaves ``switch``.

    A port with nothing behind it in the fabric is left out; the proof reports such ports as dead.
    """
    neighbours = fabric.ports[switch]
    ports = decide(rules[switch], frame, in_port).ports
    return tuple((port, neighbours[port]) for port in ports if port in neighbours)


@lru_cache(maxsize=1 << 18)
def decide(rules: SwitchRules, frame: FrameClass, in_port: int) -> Decision:
    """What a switch with ``rules`` does to ``frame``. Raises RuleError for rules without a meaning, naming them."""
    index = _index(rules)
    candidates = [*index.by_destination.get(frame.ipv4_dst, ()), *index.others]
    matching = [flow for flow in candidates if _matches(flow.match, frame, in_port)]
    if not matching:
        return Decision(None, None, (), to_controller=False)
    priority = max(flow.priority for flow in matching)
    best = [flow for flow in matching if flow.priority == priority]
    if any(flow.actions != best[0].actions for flow in best):
        raise RuleError(f"flows of one priority disagree: {' and '.join(sorted(map(describe_flow, best)))}")
    return _apply(best[0], index.groups, in_port)


def describe_flow(flow: Flow) -> str:
    """A flow as ``ovs-ofctl dump-flows`` prints it: ``priority=200,ip,nw_dst=239.1.1.1 actions=group:1``."""
    match = flow.match
    fields = [f"priority={flow.priority}"]
    if match.eth_type is not None:
        fields.append("ip" if match.eth_type == ETH_IPV4 else f"dl_type={match.eth_type:#06x}")
    for name, value in (("in_port", match.in_port), ("nw_dst", match.ipv4_dst), ("nw_proto", match.ip_proto)):
        if value is not None:
            fields.append(f"{name}={value}")
    return f"{','.join(fields)} actions={','.join(map(_describe_action, flow.actions)) or 'drop'}"


def describe_group(group: Group) -> str:
    """A group in few words: ``group 1 (ports 1,2,4)``."""
    return f"group {group.group_id} (ports {','.join(map(str, group.ports)) or 'none'})"


@dataclass(frozen=True, slots=True)
class _Index:
    """A switch's rules, arranged for look-up."""

    by_destination: dict[str | None, list[Flow]]
    others: list[Flow]
    groups: dict[int, Group]


@lru_cache(maxsize=1 << 12)
def _index(rules: SwitchRules) -> _Index:
    by_destination: dict[str | None, list[Flow]] = defaultdict(list)
    others: list[Flow] = []
    for flow in rules.flows:
        (others if flow.match.ipv4_dst is None else by_destination[flow.match.ipv4_dst]).append(flow)
    groups: dict[int, Group] = {}
    for group in rules.groups:
        if group.group_id in groups:
            raise RuleError(f"group {group.group_id} is there twice")
        groups[group.group_id] = group
    return _Index(dict(by_destination), others, groups)


def _matches(match: Match, frame: FrameClass, in_port: int) -> bool:
    return (
        match.in_port in {None, in_port}
        and match.eth_type in {None, frame.eth_type}
        and match.ip_proto in {None, frame.ip_proto}
        and match.ipv4_dst in {None, frame.ipv4_dst}
    )


def _apply(flow: Flow, groups: Mapping[int, Group], in_port: int) -> Decision:
    ports: list[int] = []
    group: Group | None = None
    for action in flow.actions:
        if isinstance(action, Output):
            ports.append(action.port)
        elif isinstance(action, ToGroup):
            if action.group_id not in groups:
                raise RuleError(f"flow {describe_flow(flow)} names group {action.group_id}, which is missing")
            group = groups[action.group_id]
            ports.extend(group.ports)
    to_controller = any(isinstance(action, ToController) for action in flow.actions)
    return Decision(flow, group, tuple(port for port in ports if port != in_port), to_controller)


def _describe_action(action: Output | ToGroup | ToController) -> str:
    if isinstance(action, Output):
        return f"output:{action.port}"
    return f"group:{action.group_id}" if isinstance(action, ToGroup) else "CONTROLLER:65535"
