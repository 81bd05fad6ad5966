"""What the console shows of the fabric: multicast groups, their trees, the counters of ports. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.plan import Plan
from topo.counters import Counters
from topo.fabric import Fabric, interface


def groups(plan: Plan, fabric: Fabric) -> Iterator[str]:
    """Every group with its members, and the links that its tree has."""
    for address, tree in plan.trees.items():
        hosts = [host.name for host in fabric.hosts if any(host.name in edge for edge in tree.edges)]
        yield f"{address}: {len(hosts)} hosts, root {tree.root}, {len(tree.edges)} links: {' '.join(hosts)}"


def trees(plan: Plan) -> Iterator[str]:
    """The tree of every group, a line for each switch and what hangs below it."""
    for address, tree in plan.trees.items():
        below: dict[str, list[str]] = {}
        for nearer, further in tree.edges:
            below.setdefault(nearer, []).append(further)
        yield f"{address}"
        yield from _branch(tree.root, below, 1)


def _branch(node: str, below: Mapping[str, list[str]], depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{node}"
    for further in below.get(node, ()):
        yield from _branch(further, below, depth + 1)


def ports(fabric: Fabric, counters: Mapping[str, Counters]) -> Iterator[str]:
    """The kernel's counters of every port: packets sent, received, and dropped on either way."""
    yield f"{'port':<12} {'leads to':<9} {'sent':>10} {'received':>10} {'dropped':>8}"
    for node, port, peer in fabric.directed_links:
        name = interface(node, port)
        count = counters[name]
        dropped = count.rx_dropped + count.tx_dropped
        yield f"{name:<12} {peer:<9} {count.tx_packets:>10} {count.rx_packets:>10} {dropped:>8}"
