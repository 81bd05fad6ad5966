"""What a program of others must move at the least: lower bounds, since its frames are not known as those of ours are.

A bound is payload alone, in bytes times links crossed; headers, acknowledgements and repeats come on top. It follows
from what is known of the program: its schedule of transfers, that it multicasts on a tree, or, where it chooses by
itself, no more than that it sends from host to host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from endpoints.collectives.kinds import KINDS, KindName
from endpoints.core.schedule import Schedule
from experiments.movement.link_theory import LinkTheory, Paths, block_crossings
from experiments.theory import tree_crossings


@dataclass(frozen=True, slots=True)
class Bound:
    """``payload`` gives the bytes for ``size`` bytes per rank (Broadcast: in all); ``words`` say what is counted."""

    words: str
    payload: Callable[[LinkTheory, KindName, int], int]


def spanning_hops(paths: Paths, ranks: int) -> int:
    """Links that one block crosses at the least to come from any one of the hosts to all, if only hosts copy it.

    However it goes, every other host is sent it by one that has it already, so that the ways it takes form a tree over
    the hosts: the least is a minimum spanning tree (Prim's algorithm) by the number of links between two hosts. It is
    the same for every byte of it, and thus for any way to cut blocks and to pipeline the parts.
    """
    nearest = {rank: len(paths(0, rank)) for rank in range(1, ranks)}
    total = 0
    while nearest:
        rank = min(nearest, key=nearest.__getitem__)
        total += nearest.pop(rank)
        nearest = {other: min(hops, len(paths(rank, other))) for other, hops in nearest.items()}
    return total


def _unicast(links: LinkTheory, kind: KindName, size: int) -> int:
    return len(_roots(links, kind)) * size * spanning_hops(links.paths, len(links.hosts))


def _tree(links: LinkTheory, kind: KindName, size: int) -> int:
    crossings = tree_crossings(links.trees[0].edges, set(links.hosts), _roots(links, kind))
    return sum(crossings.values()) * size


def _roots(links: LinkTheory, kind: KindName) -> Sequence[str]:
    """The hosts that contribute a block."""
    return links.hosts[: KINDS[kind].roots(len(links.hosts))]


UNICAST = Bound("every block to every host by unicast, over the fewest links", _unicast)
ADDED = Bound("every host's part of every block by unicast, added on the way, over the fewest links", _unicast)
"""What is added takes the ways of what is copied, backwards: where these part, hosts add."""
ON_A_TREE = Bound("every block once over each link of a multicast tree", _tree)


def as_scheduled(words: str, schedule: Schedule) -> Bound:
    """The transfers of a schedule on the routes of the fabric."""
    return Bound(words, lambda links, _, size: block_crossings(schedule(len(links.hosts), size), links.paths))
