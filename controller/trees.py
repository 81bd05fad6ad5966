"""Multicast trees: for every group one bidirectional tree that serves every sender.

A switch never sends a frame back out of the port it came in by, so one set of ports per switch does for all senders:
whichever branch a frame enters by, it leaves by all others. The tree has the branches with members and no more (all 16
hosts of a k=4 fat tree: 28 edges, of which a sender's frames cross each once), and its root is the lowest switch that
has all members below it: the edge switch, an aggregation switch of the pod, a core.

IP multicast lets anyone send, members or not. A sender whose switch is not in the tree reaches it by *feeders*: at
each switch on the way one port that leads nearer to the tree. The tree never sends into a feeder.

Where failures have cut the fabric into pieces, members in the same piece still have a tree between them.

Groups are numbered (``slot``). As a destination does for unicast, the slot's digits pick the uplinks on the way up, so
that consecutive slots take different aggregation switches, then different cores, and come round evenly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.live import Live
from topo.fabric import FabricError


@dataclass(frozen=True, slots=True)
class Tree:
    """The forwarding of one group. ``root`` is that of the piece of the fabric with most members, if there are several.

    ``ports``: per switch of the tree its ports in the tree, sorted. ``edges``: the links of the tree as (nearer to the
    root, further). ``feeders``: per switch outside the tree but on some host's way to it the one port to send out of.
    ``unreached``: members that ``root`` does not reach, in the order of hosts.
    ``at_home``: whether it starts where it would if nothing were down.
    """

    root: str
    ports: dict[str, tuple[int, ...]]
    edges: tuple[tuple[str, str], ...]
    feeders: dict[str, int]
    unreached: tuple[str, ...] = ()
    at_home: bool = True


def plan_trees(live: Live, members: Mapping[str, Collection[str]], slots: Mapping[str, int]) -> dict[str, Tree]:
    """The trees of all groups (address -> hosts) that have one, balanced: in the order of ``members``.

    A tree whose own root is dead goes where the fewest are, so that failures leave no root with more than its share.
    """
    trees: dict[str, Tree] = {}
    homeless: list[str] = []
    for group, hosts in members.items():
        tree = plan_tree(live, hosts, slots[group])
        if tree is not None:
            trees[group] = tree
            if not tree.at_home:
                homeless.append(group)
    load = Counter(tree.root for group, tree in trees.items() if tree.at_home)
    for group in sorted(homeless, key=slots.__getitem__):
        moved = plan_tree(live, members[group], slots[group], load)
        assert moved is not None
        trees[group] = moved
        load[moved.root] += 1
    return trees


def plan_tree(
    live: Live, members: Collection[str], slot: int = 0, load: Mapping[str, int] = MappingProxyType({})
) -> Tree | None:
    """The tree of the group numbered ``slot`` with these hosts as members; None if nothing alive leads to any of them.

    ``load``: how many trees the roots have already, which a tree that cannot have its own root goes by. A pure function
    of its arguments, order of ``members`` included in what does not matter. Raises FabricError for a member that is not
    a host of the fabric, ValueError for a negative slot.
    """
    strangers = sorted(set(members) - live.fabric.host.keys())
    if strangers:
        raise FabricError(f"{strangers[0]} is no host of {live.fabric.topology}: only hosts are members of groups")
    if slot < 0:
        raise ValueError(f"slot {slot} is negative: groups are numbered from 0")
    in_order = sorted(members, key=lambda name: live.fabric.host[name].index)
    attached = [name for name in in_order if name in live.host_ports[live.fabric.edge_of[name]]]
    if not attached:
        return None
    pieces = _grow_everywhere(live, attached, slot, load)
    ports = {switch: tuple(sorted(ports)) for piece in pieces for switch, ports in piece.ports.items()}
    return Tree(
        root=pieces[0].root,
        ports=dict(sorted(ports.items())),
        edges=tuple(edge for piece in pieces for edge in piece.edges),
        feeders=_feeders(live, ports, slot),
        unreached=tuple(name for name in in_order if name not in pieces[0].reached),
        at_home=pieces[0].at_home,
    )


def roots_above(live: Live, members: Collection[str]) -> list[str]:
    """The switches of the lowest tier that has any with all ``members`` below it, numbered as D-mod-k would.

    Neighbours in the list differ in the uplink taken at the lowest tier, then in the one above. Empty if failures (or
    a fabric without tiers) leave no such switch.
    """
    above = [s for s in live.fabric.switches if live.below[s.name].issuperset(members)]
    lowest = min((s.tier for s in above), default=0)
    edge = live.fabric.edge_of[min(members, key=lambda name: live.fabric.host[name].index)]
    candidates = [s.name for s in above if s.tier == lowest]
    return sorted(candidates, key=lambda root: (_uplink_digits(live, edge, root), root))


@dataclass(slots=True)
class _Grown:
    """A tree in the making."""

    root: str
    ports: dict[str, set[int]]
    edges: list[tuple[str, str]]
    reached: set[str]
    at_home: bool = True


def _root(live: Live, members: list[str], slot: int, load: Mapping[str, int]) -> tuple[str, bool]:
    """Where the tree starts, and whether that is the slot's own root, so that a failure elsewhere moves nothing."""
    usual = roots_above(live.intact, members)
    usable = roots_above(live, members)
    if usual and (preferred := usual[slot % len(usual)]) in usable:
        return preferred, True
    if usable:
        start = slot % len(usable)
        return min(usable[start:] + usable[:start], key=lambda root: load.get(root, 0)), False
    grown = (_grow(live, switch.name, members) for switch in live.fabric.switches)
    return min(grown, key=lambda tree: (-len(tree.reached), len(tree.edges))).root, False


def _grow_everywhere(live: Live, members: list[str], slot: int, load: Mapping[str, int]) -> list[_Grown]:
    """A tree for these members; and for those that it does not reach, trees in the pieces that they are in."""
    pieces: list[_Grown] = []
    while members:
        root, at_home = _root(live, members, slot, load)
        pieces.append(_grow(live, root, members))
        pieces[-1].at_home = at_home
        members = [name for name in members if name not in pieces[-1].reached]
    return pieces


def _uplink_digits(live: Live, edge: str, root: str) -> tuple[int, ...]:
    """Which uplink (counted from 0) each switch on the way from ``edge`` up to ``root`` takes, the highest first."""
    parents = live.parents(root)
    digits: list[int] = []
    while edge != root:
        port, parent, _ = parents[edge]
        uplinks = live.uplinks[edge]
        digits.append(uplinks.index(port) if port in uplinks else len(uplinks))
        edge = parent
    return tuple(reversed(digits))


def _grow(live: Live, root: str, members: Iterable[str]) -> _Grown:
    """The branches from ``root`` to the members that it reaches, less a bare stem at the root."""
    parents = live.parents(root)
    tree = _Grown(root, defaultdict(set), [], set())
    for member in members:
        switch = live.fabric.edge_of[member]
        if switch != root and switch not in parents:
            continue
        tree.reached.add(member)
        tree.edges.append((switch, member))
        tree.ports[switch].add(live.host_ports[switch][member])
        while switch != root:
            port, parent, parent_port = parents[switch]
            if port in tree.ports[switch]:
                break
            tree.ports[switch].add(port)
            tree.ports[parent].add(parent_port)
            tree.edges.append((parent, switch))
            switch = parent
    _cut_stem(live, tree)
    return tree


def _cut_stem(live: Live, tree: _Grown) -> None:
    """Move the root down as long as it has a single branch, and that to a switch: no member needs the stem."""
    while len(tree.ports[tree.root]) == 1:
        (port,) = tree.ports[tree.root]
        below = live.fabric.ports[tree.root][port]
        if below in live.fabric.host:
            return
        del tree.ports[tree.root]
        tree.edges.remove((tree.root, below))
        tree.ports[below].remove(live.far_port[tree.root, port])
        tree.root = below


def _feeders(live: Live, inside: Collection[str], slot: int) -> dict[str, int]:
    """For every switch on a host's way to the tree, the port that leads nearer to it."""
    distance = live.distances(sorted(inside))
    feeders: dict[str, int] = {}
    for edge, hosts in live.host_ports.items():
        switch = edge
        while hosts and distance.get(switch, 0) > 0 and switch not in feeders:
            feeders[switch] = live.choose(switch, live.towards(switch, distance), slot)
            switch = live.trunks[switch][feeders[switch]]
    return dict(sorted(feeders.items()))
