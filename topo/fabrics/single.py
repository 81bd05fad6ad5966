"""One switch with all hosts on it: the smallest fabric, for lessons and quick checks. Hosts are ``10.0.0.(2 + i)``."""

from __future__ import annotations

from topo.addressing import make_host, make_switch, require_range
from topo.fabric import Fabric, Link
from topo.registry import topology


@topology("single")
def single(hosts: int = 4) -> Fabric:
    """A single switch s1 with hosts (1 to 253)."""
    require_range("single", "hosts", hosts, 1, 253)
    switch = make_switch("s1", tier=0, role="edge", index=1)
    ends = tuple(make_host(i, f"10.0.0.{2 + i}") for i in range(hosts))
    return Fabric(
        topology="single",
        params={"hosts": hosts},
        hosts=ends,
        switches=(switch,),
        links=tuple(Link(host.name, 0, switch.name, 1 + host.index) for host in ends),
    )
