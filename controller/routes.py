"""Unicast routes: for every host, the way to it from every switch.

A route goes by shortest paths, which on a tiered fabric means up to a common switch and down again; where several are
equally short the destination decides (D-mod-k, :meth:`controller.live.Live.choose`). Each hop is one nearer to the
destination, so no table can hold a loop, whatever is down.
"""

from __future__ import annotations

from controller.live import Live
from topo.fabric import Fabric, FabricError

Routes = dict[str, dict[str, int]]
"""Per switch: IPv4 address of a host -> port to send out of."""


def unicast_routes(live: Live) -> Routes:
    """Routes over what is alive. A host that a switch cannot reach is absent from that switch's table."""
    fabric = live.fabric
    routes: Routes = {switch.name: {} for switch in fabric.switches}
    for edge, hosts in live.host_ports.items():
        if not hosts:
            continue
        distance = live.distances([edge])
        for switch in distance:
            usable = live.towards(switch, distance)
            for host, port in hosts.items():
                destination = fabric.host[host]
                out = port if switch == edge else live.choose(switch, usable, destination.index)
                routes[switch][destination.ip] = out
    return routes


def route(fabric: Fabric, routes: Routes, source: str, destination: str) -> tuple[tuple[str, str], ...]:
    """The links that a frame crosses from one host to another by ``routes``, each as (sender, receiver).

    FabricError where the tables do not lead there. They hold no loop (see above), so the walk ends.
    """
    address = fabric.host[destination].ip
    links = [(source, fabric.edge_of[source])]
    while (here := links[-1][1]) != destination:
        port = routes[here].get(address)
        if port is None:
            raise FabricError(f"{fabric.topology}: {here} has no route from {source} to {destination}")
        links.append((here, fabric.ports[here][port]))
    return tuple(links)
