"""The kinds of collectives as values: what goes in and what comes out, in blocks of N bytes among P ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KindName = Literal["allgather", "broadcast", "reduce_scatter"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What all algorithms of a kind have in common.

    ``rooted``: rank 0 alone contributes, else every rank does. ``scatters``: it contributes a block for each rank, else
    a single one. ``gathers``: what a rank receives are blocks from all who contribute, else a single one. ``reduces``:
    what it receives is the sum of what all have contributed to it. ``title`` is its name for people.
    """

    title: str
    rooted: bool = False
    scatters: bool = False
    gathers: bool = False
    reduces: bool = False

    def roots(self, ranks: int) -> int:
        """How many of the ranks contribute."""
        return 1 if self.rooted else ranks

    def data_blocks(self, ranks: int) -> int:
        """Blocks that a rank contributes that contributes at all."""
        return ranks if self.scatters else 1

    def buffer_blocks(self, ranks: int) -> int:
        """Blocks that every rank receives."""
        return self.roots(ranks) if self.gathers else 1

    def crossing_blocks(self, ranks: int) -> int:
        """Blocks that must cross a link of each host, payload alone; 0 where there is one rank.

        A receiver must take those of all others that contribute. Where sums are made by the hosts, it is the senders'
        links that are bound so: what a rank adds to the block of each other has to leave it, in whatever sum; and since
        one rank receives what another has sent, the receivers' links on average, too.
        """
        return 0 if ranks < 2 else 1 if self.rooted else ranks - 1


KINDS: dict[KindName, Kind] = {
    "allgather": Kind("Allgather", gathers=True),
    "broadcast": Kind("Broadcast", rooted=True),
    "reduce_scatter": Kind("Reduce-Scatter", scatters=True, reduces=True),
}
"""By name: every rank gives N bytes and receives P * N; rank 0 gives N bytes and everybody receives them; every rank
gives P * N bytes and receives the sum of its own block of N from all."""
