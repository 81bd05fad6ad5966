"""What a collective can take and what it must move: the yardsticks that measured figures are compared with.

``P`` ranks, ``N`` bytes per block (one from each rank, or for each that is to receive a sum; Broadcast: the message),
links of ``rate`` bit/s. Allgather is bound by each receiver's link, which must take the other ranks' ``(P - 1) N``
bytes, and Reduce-Scatter, where hosts add, by as many of each sender's. A multicast tree of ``E`` edges carries each
root's block once over every edge, away from the root, so an Allgather moves ``E P N`` bytes of payload in all: 448 N on
a fat tree of k = 4, which has 28 such edges and 16 ranks (Khalilov et al., SC'24, whose artifact counts the same way).

Bandwidths are those of nccl-tests: ``algbw`` is the size of the whole result over time, ``busbw`` is what makes
algorithms comparable at any P, ``algbw (P - 1) / P`` for Allgather and Reduce-Scatter, ``algbw`` itself for Broadcast.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from endpoints.collectives.kinds import KINDS, KindName
from endpoints.core.communicator import FRAME_OVERHEAD_UD
from topo.fabric import link_key


def limit_seconds(kind: KindName, ranks: int, size: int, rate_bps: int) -> float:
    """Seconds that the receiving link needs for the payload alone; 0 where nothing crosses a link."""
    return KINDS[kind].crossing_blocks(ranks) * size * 8 / rate_bps


def header_cap(mtu: int) -> float:
    """The most of the limit that full chunks can reach, since each brings its headers: 0.983 at 4 KiB."""
    return mtu / (mtu + FRAME_OVERHEAD_UD)


def algbw(kind: KindName, ranks: int, size: int, seconds: float) -> float:
    """Algorithm bandwidth in bytes/s; 0 for no time."""
    return KINDS[kind].roots(ranks) * size / seconds if seconds > 0 else 0.0


def busbw(kind: KindName, ranks: int, size: int, seconds: float) -> float:
    """Bus bandwidth in bytes/s."""
    factor = 1.0 if KINDS[kind].rooted else (ranks - 1) / ranks
    return algbw(kind, ranks, size, seconds) * factor


def tree_payload_bytes(edges: int, blocks: int, size: int) -> int:
    """Payload over all links when each of ``blocks`` roots multicasts ``size`` bytes on a tree of ``edges`` edges."""
    return edges * blocks * size


@dataclass(frozen=True, slots=True)
class Share:
    """What one root sends on one tree: ``payload`` bytes in ``chunks`` frames."""

    payload: int
    chunks: int

    @property
    def wire_bytes(self) -> int:
        """Bytes as an interface counts them: payload and the headers of every frame."""
        return self.payload + self.chunks * FRAME_OVERHEAD_UD

    @classmethod
    def whole(cls, size: int, mtu: int) -> Share:
        """A block of ``size`` bytes that goes over one tree."""
        return cls(size, -(-size // mtu))

    @classmethod
    def dealt(cls, size: int, mtu: int, trees: int) -> tuple[Share, ...]:
        """A block dealt out chunk by chunk: chunk ``i`` goes over tree ``i % trees``; the last one may be short."""
        chunks = -(-size // mtu)
        missing = chunks * mtu - size
        counts = [len(range(tree, chunks, trees)) for tree in range(trees)]
        last = (chunks - 1) % trees if chunks else None
        return tuple(cls(n * mtu - (missing if tree == last else 0), n) for tree, n in enumerate(counts))


def tree_crossings(
    edges: Iterable[tuple[str, str]], members: Collection[str], roots: Collection[str]
) -> dict[str, int]:
    """How many roots' blocks cross each directed link of a tree, by link key.

    ``edges`` are the tree's links in either order, ``members`` the hosts on it, ``roots`` those that send. A link is
    crossed away from every root that has a member on the other side; a branch without members carries nothing.
    """
    near: dict[str, list[str]] = defaultdict(list)
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    crossings: dict[str, int] = defaultdict(int)
    for root in roots:
        for sender, receiver in _away_from(root, near, members):
            crossings[link_key(sender, receiver)] += 1
    return dict(crossings)


def _away_from(root: str, near: Mapping[str, Sequence[str]], members: Collection[str]) -> list[tuple[str, str]]:
    """The links that a packet from ``root`` crosses, in no promised order."""
    parent = {root: root}
    order = [root]
    for node in order:
        for peer in near[node]:
            if peer == parent[node]:
                continue
            if peer in parent:
                raise ValueError(f"no tree: {peer} is reached twice from {root}")
            parent[peer] = node
            order.append(peer)
    lost = set(members) - set(parent)
    if lost:
        raise ValueError(f"no tree: {root} does not reach {', '.join(sorted(lost))}")
    wanted: set[str] = set()
    for node in reversed(order):
        if node in members or node in wanted:
            wanted |= {node, parent[node]}
    return [(parent[node], node) for node in order[1:] if node in wanted]


def multicast_link_bytes(trees: Sequence[tuple[Mapping[str, int], Share]]) -> dict[str, int]:
    """Bytes by directed link, headers included: for each tree its crossings and each root's share on it."""
    total: dict[str, int] = defaultdict(int)
    for crossings, share in trees:
        for link, blocks in crossings.items():
            total[link] += blocks * share.wire_bytes
    return dict(sorted(total.items()))
