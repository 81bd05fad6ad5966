"""Frames that are under way while rules change, and whether any of them could come to a switch twice.

Between two plans every switch first goes back to what both have in common (:func:`controller.rules.common`). So a frame
is forwarded by the old rules for some hops, and from then on by the new ones; what is sent anew is not concerned. The
new rules may lead it back to where the old ones brought it from, or to where they sent another copy, if it waited in a
queue for the whole time of the change. Most changes cannot do that, since a tree takes nothing from a link that it does
not use; where one can, whoever carries it out has to let the queues run dry between the two steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from controller.forwarding import FrameClass, forward
from controller.rules import ETH_IPV4, SwitchRules
from topo.fabric import Fabric

_UDP = 17

Hop = tuple[str, int]
"""A frame's arrival: (switch, the port that it came in by)."""

Rules = Mapping[str, SwitchRules]


def returns(fabric: Fabric, old: Rules, new: Rules) -> list[str]:
    """Ways for a frame under way from ``old`` to ``new`` to come to a switch twice, one line for each address; or none.

    Both hold rules without loops, of the same switches. Raises RuleError for rules without a meaning.
    """
    found = (_returns_of(fabric, old, new, address) for address in sorted(_changed_addresses(old, new)))
    return [line for line in found if line is not None]


def _changed_addresses(old: Rules, new: Rules) -> set[str]:
    """Destinations that some switch treats otherwise than before."""
    changed: set[str] = set()
    for switch, held in new.items():
        before = old[switch]
        groups = {group.group_id for group in before.groups ^ held.groups}
        for flow in before.flows | held.flows:
            moved = flow not in before.flows or flow not in held.flows
            if moved or any(getattr(action, "group_id", None) in groups for action in flow.actions):
                changed |= {flow.match.ipv4_dst} - {None}  # type: ignore[arg-type]
    return changed


def _returns_of(fabric: Fabric, old: Rules, new: Rules, address: str) -> str | None:
    frame = FrameClass(ETH_IPV4, _UDP, address)

    def onwards(rules: Rules, hop: Hop) -> list[Hop]:
        copies = forward(fabric, rules, hop[0], hop[1], frame) if hop[0] in rules else ()
        return [(peer, fabric.port_to[peer][hop[0]]) for _, peer in copies if peer in fabric.switch]

    @cache
    def reached_by_new(hop: Hop) -> frozenset[str]:
        """Every switch that a frame sees from ``hop`` on, if all of them have the new rules."""
        return frozenset({hop[0]}).union(*(reached_by_new(following) for following in onwards(new, hop)))

    def walk(hop: Hop, below: dict[Hop, frozenset[str]]) -> frozenset[str]:
        """The same by the old rules; notes it of every hop on the way."""
        below[hop] = frozenset({hop[0]}).union(*(walk(following, below) for following in onwards(old, hop)))
        return below[hop]

    for edge, host in sorted({switch: host for host, switch in fabric.edge_of.items()}.items()):
        below: dict[Hop, frozenset[str]] = {}
        everywhere = walk((edge, fabric.port_to[edge][host]), below)
        for hop, beyond in list(below.items())[:-1]:  # the last is the sender's own switch
            again = reached_by_new(hop) & (everywhere - beyond)
            if again:
                return f"{address} from {host}: {hop[0]} would send it on to {min(again)}, which has had it"
    return None
