"""Unicast routes: for every host, the way to it from every switch.

A route goes by shortest paths, which on a tiered fabric means up to a common switch and down again; where several are
equally short the destination decides (D-mod-k, :meth:`controller.live.Live.choose`). Each hop is one nearer to the
destination, so no table can hold a loop, whatever is down.
"""

from __future__ import annotations

from controller.live import Live

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
