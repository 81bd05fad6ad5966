"""The k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts.

Wiring and host addresses follow Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network
Architecture" (SIGCOMM 2008, section 3): ``10.pod.edge.(2 + i)``. Each switch has k ports, the lower half downwards.
Aggregation switch ``j`` of every pod reaches the same cores, ``j k/2 .. (j + 1) k/2 - 1``, and a core's port ``p + 1``
leads to pod ``p``.
"""

from __future__ import annotations

from topo.addressing import make_host, make_switch, require_range
from topo.fabric import Fabric, FabricError, Host, Link, Switch
from topo.registry import topology

MAX_K = 48
"""Largest k whose hosts, 27,648, the systematic MACs can number with room to spare."""


@topology("fattree")
def fattree(k: int = 4) -> Fabric:
    """k-ary fat tree (k even, 2 to 48): k^3/4 hosts, 5k^2/4 switches, full bisection."""
    if k % 2:
        raise FabricError(f"fattree: k={k} is odd, a fat tree's switches have an even number of ports (2, 4, 6, ...)")
    require_range("fattree", "k", k, 2, MAX_K)
    pods = [_Pod(k, number) for number in range(k)]
    cores = [make_switch(f"c{i}", tier=2, role="core", index=i) for i in range((k // 2) ** 2)]
    return Fabric(
        topology="fattree",
        params={"k": k},
        hosts=tuple(host for pod in pods for host in pod.hosts),
        switches=(*(s for pod in pods for s in pod.edges), *(s for pod in pods for s in pod.aggregations), *cores),
        links=tuple(link for pod in pods for link in pod.links(cores)),
    )


class _Pod:
    """One pod: its switches, its hosts and the links that start in it."""

    def __init__(self, k: int, number: int) -> None:
        self.half = k // 2
        self.number = number
        separator = "_" if k > 10 else ""  # e112 would be pod 11, edge 2 as well as pod 1, edge 12
        self.edges, self.aggregations = (
            [
                make_switch(f"{letter}{number}{separator}{i}", tier=tier, role=role, index=i, pod=number)
                for i in range(self.half)
            ]
            for tier, (letter, role) in enumerate((("e", "edge"), ("a", "aggregation")))
        )
        self.hosts: list[Host] = [
            make_host((number * self.half + edge) * self.half + i, f"10.{number}.{edge}.{2 + i}")
            for edge in range(self.half)
            for i in range(self.half)
        ]

    def links(self, cores: list[Switch]) -> list[Link]:
        """Links from hosts to edges, from edges to aggregations and from aggregations to cores, in this order."""
        half = self.half
        return [
            *(Link(host.name, 0, self.edges[n // half].name, 1 + n % half) for n, host in enumerate(self.hosts)),
            *(
                Link(edge.name, 1 + half + j, aggregation.name, 1 + i)
                for i, edge in enumerate(self.edges)
                for j, aggregation in enumerate(self.aggregations)
            ),
            *(
                Link(aggregation.name, 1 + half + m, cores[j * half + m].name, 1 + self.number)
                for j, aggregation in enumerate(self.aggregations)
                for m in range(half)
            ),
        ]
