"""The traffic model that the authors published with the SC'24 paper, and how far it is from exact counting.

Their script (``sim/estimate_allgather_cost.py`` of spcl/muliticast-based-allgather) counts by how many links the blocks
of an Allgather move through a fat tree of radix 32: 16 hosts on a top-of-rack switch, two such switches in a pod, pods
joined by cores. A point-to-point transfer crosses 2 links below one switch, 4 in a pod, 6 through a core; a multicast
crosses every edge of its tree, which has one link per host, per switch and, where there is more than one pod, per pod.

It departs from that in two places, both written anew here from its printed figures, none of its code:

- a transfer to a lower rank is priced as if both hosts were below one switch: the linear and the recursive-doubling
  algorithm lose most of half their transfers, the ring what its last rank sends back to its first;
- a multicast that leaves its pod is charged for the sender's own pod once more.

The model's figure and the causes of its error add up to the exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

HOSTS_PER_TOR = 16
TORS_PER_POD = 2
HOSTS_PER_POD = HOSTS_PER_TOR * TORS_PER_POD
SAME_TOR, SAME_POD, ACROSS_CORE = 2, 4, 6
"""Links that a transfer crosses."""

RANKS = (8, 16, 32, 64, 128, 256, 512, 1024)
"""The sizes that the script prints."""

BACKWARD_IN_POD = "to a lower rank in the pod: priced 2, not 4"
BACKWARD_ACROSS = "to a lower rank across the core: priced 2, not 6"
OWN_POD_TWICE = "multicast: the sender's own pod once too often"


@dataclass(frozen=True, slots=True)
class Count:
    """Blocks times links of one algorithm: as the model has it, exactly, and by cause what the model has too much.

    ``artifact - sum(excess) == exact``; an excess is negative where the model has too little.
    """

    algorithm: str
    ranks: int
    artifact: int
    exact: int
    excess: dict[str, int]


def distance(src: int, dst: int) -> int:
    """Links between two hosts."""
    if src // HOSTS_PER_TOR == dst // HOSTS_PER_TOR:
        return SAME_TOR
    return SAME_POD if src // HOSTS_PER_POD == dst // HOSTS_PER_POD else ACROSS_CORE


def price(src: int, dst: int) -> int:
    """Links that the model charges."""
    return SAME_TOR if dst < src else distance(src, dst)


def tree_edges(ranks: int) -> int:
    """Edges of the multicast tree: one per host, and one per switch and per pod where there are several."""
    tors, pods = -(-ranks // HOSTS_PER_TOR), -(-ranks // HOSTS_PER_POD)
    return ranks + (tors if tors > 1 else 0) + (pods if pods > 1 else 0)


def counts(ranks: int) -> tuple[Count, ...]:
    """All algorithms for this number of ranks, a power of two as recursive doubling needs it."""
    if ranks < 1 or ranks & (ranks - 1):
        raise ValueError(f"{ranks} ranks: the model's recursive doubling needs a power of two")
    point_to_point = tuple(_point_to_point(name, ranks, moves) for name, moves in _ALGORITHMS.items())
    return (*point_to_point, _multicast(ranks))


Moves = Iterator[tuple[int, int, int]]
"""(source, destination, blocks that move from the one to the other)"""


def _linear(ranks: int) -> Moves:
    yield from ((src, dst, 1) for src in range(ranks) for dst in range(ranks) if src != dst)


def _ring(ranks: int) -> Moves:
    if ranks > 1:
        yield from ((src, (src + 1) % ranks, ranks - 1) for src in range(ranks))


def _recursive_doubling(ranks: int) -> Moves:
    for step in range(ranks.bit_length() - 1):
        yield from ((src, src ^ (1 << step), 1 << step) for src in range(ranks))


_ALGORITHMS: dict[str, Callable[[int], Moves]] = {
    "linear": _linear,
    "ring": _ring,
    "recursive doubling": _recursive_doubling,
}


def _point_to_point(name: str, ranks: int, moves: Callable[[int], Moves]) -> Count:
    artifact = exact = 0
    excess = {BACKWARD_IN_POD: 0, BACKWARD_ACROSS: 0}
    for src, dst, blocks in moves(ranks):
        charged, true = price(src, dst) * blocks, distance(src, dst) * blocks
        artifact += charged
        exact += true
        if charged != true:
            excess[BACKWARD_ACROSS if src // HOSTS_PER_POD != dst // HOSTS_PER_POD else BACKWARD_IN_POD] += (
                charged - true
            )
    return Count(name, ranks, artifact, exact, {cause: links for cause, links in excess.items() if links})


def _multicast(ranks: int) -> Count:
    exact = tree_edges(ranks) * ranks
    own_pod = ranks if ranks > HOSTS_PER_POD else 0
    return Count("multicast", ranks, exact + own_pod, exact, {OWN_POD_TWICE: own_pod} if own_pod else {})
