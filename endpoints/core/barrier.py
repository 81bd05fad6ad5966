"""Barrier by a tree: arrivals are gathered towards rank 0, then the word to go spreads the same way back.

It stands before the first multicast because a datagram that meets a receiver without posted buffers is lost (PAPER
1.4). Of barriers on one machine, the one with the fewest messages is the fastest, not the one with the fewest rounds:
2 (P - 1) messages, where dissemination (Hensgen, Finkel, Manber 1988) takes P log2 P, and every rank but those inside
the tree wakes up once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

RADIX = 16
"""Children of a rank: 17 ranks are one hop from rank 0, 273 ranks two."""


def parent_of(rank: int) -> int | None:
    """Whom a rank tells that it has arrived; None for rank 0."""
    return (rank - 1) // RADIX if rank else None


def children_of(rank: int, size: int) -> range:
    """Who tells a rank so, in a communicator of ``size`` ranks."""
    return range(rank * RADIX + 1, min((rank + 1) * RADIX + 1, size))


def depth_of(rank: int) -> int:
    """Hops from a rank to rank 0; no rank before it has more."""
    parent = parent_of(rank)
    return 0 if parent is None else 1 + depth_of(parent)


class Step(IntEnum):
    """What a message of the barrier says."""

    ARRIVED = 0
    """The sender and everybody below it have arrived."""
    GO = 1
    """Everybody has arrived."""


class Barrier:
    """One passage of one rank; ``tell(peer, step)`` sends a reliable message."""

    def __init__(self, rank: int, size: int, tell: Callable[[int, Step], None]) -> None:
        self._tell = tell
        self._parent = parent_of(rank)
        self._children = children_of(rank, size)
        self._missing = set(self._children)
        self._started = False
        self.depth = depth_of(rank)
        self.passed = False
        """Whether everyone is known to have arrived."""

    @property
    def neighbours(self) -> list[int]:
        """Those who wait for this rank, or for whom it waits."""
        return ([] if self._parent is None else [self._parent]) + list(self._children)

    @property
    def awaited(self) -> list[int]:
        """The ranks whose message is awaited, ascending; none once passed."""
        if self.passed:
            return []
        return sorted(self._missing) or ([] if self._parent is None else [self._parent])

    def start(self) -> None:
        """Arrive."""
        self._started = True
        self._advance()

    def hear(self, peer: int, step: int) -> None:
        """A message came in; those from below may come before the own arrival."""
        if step == Step.ARRIVED and peer in self._missing:
            self._missing.remove(peer)
            self._advance()
        elif step == Step.GO and peer == self._parent:
            self._pass()

    def _advance(self) -> None:
        if not self._started or self._missing:
            return
        if self._parent is None:
            self._pass()
        else:
            self._tell(self._parent, Step.ARRIVED)

    def _pass(self) -> None:
        if not self.passed:
            self.passed = True
            for child in self._children:
                self._tell(child, Step.GO)
