"""The part of a fabric that is alive, and the two questions that routes and trees ask of it.

How far is every switch from these ones (breadth-first), and which of several equally short ways to take (D-mod-k). A
failure is a set of link ends, ``(node, port)``, as OpenFlow's port status reports them: a link is down when either of
its ends is, a switch is down when all its ends are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property

from topo.fabric import Fabric, FabricError

End = tuple[str, int]
"""One end of a link: (node, port)."""


def link_ends(fabric: Fabric, one: str, other: str) -> frozenset[End]:
    """Both ends of the link between two neighbours: the failure of that link."""
    link = fabric.link_between(one, other)
    return frozenset({(link.a, link.a_port), (link.b, link.b_port)})


def switch_ends(fabric: Fabric, switch: str) -> frozenset[End]:
    """Every end of ``switch``: the failure of the whole switch."""
    if switch not in fabric.switch:
        raise FabricError(f"no switch {switch} in {fabric.topology}")
    return frozenset((switch, port) for port in fabric.ports[switch])


class Live:
    """``fabric`` without the links that have an end in ``down``. Immutable; what it works out it remembers."""

    def __init__(self, fabric: Fabric, down: frozenset[End] = frozenset()) -> None:
        unknown = sorted(end for end in down if end[1] not in fabric.ports.get(end[0], {}))
        if unknown:
            raise FabricError(f"{fabric.topology} has no link end {unknown[0]}: name ends as (node, port)")
        self.fabric = fabric
        self.down = down
        self.trunks: dict[str, dict[int, str]] = {s.name: {} for s in fabric.switches}
        """Of each switch, the live ports that lead to other switches, in order of port, and what is behind them."""
        self.host_ports: dict[str, dict[str, int]] = {s.name: {} for s in fabric.switches}
        """Of each switch, its hosts with a live link and the port of each."""
        self.far_port: dict[End, int] = {}
        """The port at the other end of the link of each (switch, port), dead or alive."""
        for switch, port, peer, peer_port in _seen_by_switches(fabric):
            self.far_port[switch, port] = peer_port
            if (switch, port) in down or (peer, peer_port) in down:
                continue
            if peer in fabric.host:
                self.host_ports[switch][peer] = port
            else:
                self.trunks[switch][port] = peer
        self._parents: dict[str, dict[str, tuple[int, str, int]]] = {}

    @cached_property
    def intact(self) -> Live:
        """The same fabric with nothing down."""
        return Live(self.fabric) if self.down else self

    @cached_property
    def uplinks(self) -> dict[str, tuple[int, ...]]:
        """Of each switch, its ports towards a higher tier, dead ones included (D-mod-k counts all of them)."""
        tier = {s.name: s.tier for s in self.fabric.switches}
        return {
            s.name: tuple(p for p, peer in sorted(self.fabric.ports[s.name].items()) if tier.get(peer, -1) > s.tier)
            for s in self.fabric.switches
        }

    @cached_property
    def below(self) -> dict[str, frozenset[str]]:
        """Of each switch, the hosts that it reaches by going down only."""
        tier = {s.name: s.tier for s in self.fabric.switches}
        below: dict[str, frozenset[str]] = {}
        for switch in sorted(tier, key=tier.__getitem__):
            lower = (below[peer] for peer in self.trunks[switch].values() if tier[peer] < tier[switch])
            below[switch] = frozenset(self.host_ports[switch]).union(*lower)
        return below

    @cached_property
    def _stride(self) -> dict[int, int]:
        """By tier, how far apart destinations are that take the next uplink: the product of the widths below."""
        strides: dict[int, int] = {}
        stride = 1
        for tier in sorted({s.tier for s in self.fabric.switches}):
            strides[tier] = stride
            stride *= max(1, *(len(self.uplinks[s.name]) for s in self.fabric.switches if s.tier == tier), 1)
        return strides

    @cached_property
    def far_end(self) -> dict[End, End]:
        """The other end of the link of each (switch, port), dead or alive."""
        return {end: (self.fabric.ports[end[0]][end[1]], port) for end, port in self.far_port.items()}

    def distances(self, targets: Iterable[str]) -> dict[str, int]:
        """Hops from every switch to the nearest of the switches ``targets``; those that reach none are absent."""
        distance = dict.fromkeys(targets, 0)
        queue = deque(distance)
        while queue:
            switch = queue.popleft()
            for peer in self.trunks[switch].values():
                if peer not in distance:
                    distance[peer] = distance[switch] + 1
                    queue.append(peer)
        return distance

    def parents(self, root: str) -> dict[str, tuple[int, str, int]]:
        """The breadth-first tree of all switches from ``root``: switch -> (its port, its parent, the parent's port)."""
        if root not in self._parents:
            found: dict[str, tuple[int, str, int]] = {}
            queue = deque([root])
            while queue:
                parent = queue.popleft()
                for port, switch in self.trunks[parent].items():
                    if switch != root and switch not in found:
                        found[switch] = (self.far_port[parent, port], parent, port)
                        queue.append(switch)
            self._parents[root] = found
        return self._parents[root]

    def towards(self, switch: str, distance: dict[str, int]) -> list[int]:
        """The live ports of ``switch`` that lead one hop nearer by ``distance``, in order."""
        nearer = distance[switch] - 1
        return [port for port, peer in self.trunks[switch].items() if distance.get(peer) == nearer]

    def choose(self, switch: str, usable: Sequence[int], index: int) -> int:
        """The one of the ``usable`` ports that traffic number ``index`` takes: D-mod-k over the uplinks.

        The number's digit for this tier picks the uplink, as in E. Zahavi's "D-Mod-K routing" for fat trees (2010):
        every uplink carries as many destinations as the next, and what goes to one destination stays together. A dead
        uplink's share is spread over the others; nothing else moves.
        """
        digit = index // self._stride[self.fabric.switch[switch].tier]
        uplinks = self.uplinks[switch]
        if uplinks and (preferred := uplinks[digit % len(uplinks)]) in usable:
            return preferred
        return usable[digit % len(usable)]


def _seen_by_switches(fabric: Fabric) -> list[tuple[str, int, str, int]]:
    """Every link as each switch on it sees it: (switch, port, peer, the peer's port), in order of switch and port."""
    ends = [(link.b, link.b_port, link.a, link.a_port) for link in fabric.links]
    ends += [(link.a, link.a_port, link.b, link.b_port) for link in fabric.links if link.a in fabric.switch]
    return sorted(ends)
