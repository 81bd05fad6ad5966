"""Traffic by tier: which links of a fabric belong together, and their totals.

A directed link belongs to the tier of its sender: what hosts send are the host uplinks; what a switch sends, up or
down, is of its own tier, called by the role that the topology gives it (edge, aggregation, core; leaf, spine). So every
link is in one tier and the tiers add up to all links.
"""

from __future__ import annotations

from collections.abc import Mapping

from topo.fabric import Fabric, link_key

HOST_UPLINKS = "host uplinks"


def tier_of_links(fabric: Fabric) -> dict[str, str]:
    """The tier of every directed link, by link key; tiers from the hosts up."""
    order = {HOST_UPLINKS: -1} | {switch.role: switch.tier for switch in fabric.switches}
    links = [
        (fabric.switch[node].role if node in fabric.switch else HOST_UPLINKS, link_key(node, peer))
        for node, _, peer in fabric.directed_links
    ]
    return {link: tier for tier, link in sorted(links, key=lambda entry: order[entry[0]])}


def totals(fabric: Fabric, per_link: Mapping[str, int]) -> dict[str, int]:
    """The sum over the links of each tier, from the hosts up; links that are not named count nothing."""
    total: dict[str, int] = {}
    for link, tier in tier_of_links(fabric).items():
        total[tier] = total.get(tier, 0) + per_link.get(link, 0)
    return total


def matrix(fabric: Fabric, per_link: Mapping[str, int]) -> tuple[list[str], list[list[int]]]:
    """(nodes, rows): ``rows[i][j]`` is what node ``i`` sent to node ``j``, 0 where there is no link."""
    nodes = [*fabric.host, *fabric.switch]
    return nodes, [[per_link.get(link_key(one, other), 0) for other in nodes] for one in nodes]
