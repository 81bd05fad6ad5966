"""The two-level leaf-spine: every leaf has a link to every spine, hosts hang on the leaves.

Hosts have the addresses ``10.0.leaf.(2 + i)``. A leaf's ports ``1 .. hosts`` lead to its hosts and the next ones to
the spines; a spine's port ``l + 1`` leads to leaf ``l``.
"""

from __future__ import annotations

from topo.addressing import make_host, make_switch, require_range
from topo.fabric import Fabric, Link
from topo.registry import topology


@topology("leafspine")
def leafspine(leaves: int = 4, spines: int = 2, hosts: int = 4) -> Fabric:
    """Leaf-spine: leaves (1 to 256), spines (1 to 256), hosts on each leaf (1 to 253)."""
    require_range("leafspine", "leaves", leaves, 1, 256)
    require_range("leafspine", "spines", spines, 1, 256)
    require_range("leafspine", "hosts", hosts, 1, 253)
    lower = [make_switch(f"l{i}", tier=0, role="leaf", index=i) for i in range(leaves)]
    upper = [make_switch(f"s{i}", tier=1, role="spine", index=i) for i in range(spines)]
    ends = [make_host(leaf * hosts + i, f"10.0.{leaf}.{2 + i}") for leaf in range(leaves) for i in range(hosts)]
    return Fabric(
        topology="leafspine",
        params={"leaves": leaves, "spines": spines, "hosts": hosts},
        hosts=tuple(ends),
        switches=(*lower, *upper),
        links=(
            *(Link(host.name, 0, lower[host.index // hosts].name, 1 + host.index % hosts) for host in ends),
            *(
                Link(leaf.name, 1 + hosts + j, spine.name, 1 + i)
                for i, leaf in enumerate(lower)
                for j, spine in enumerate(upper)
            ),
        ),
    )
