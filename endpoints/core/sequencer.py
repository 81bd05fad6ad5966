"""Who multicasts when: M chains of roots, each root activating the next of its chain (PAPER 1.8).

Chain j holds a contiguous run of the roots, so that any number of roots goes with any number of chains. The active
roots pace themselves so that no receiving link is offered more than its rate. Chains that are active together start a
slot apart: each frame meets an empty queue, and a barrier or recovery message never waits behind a burst of all roots.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD_START_CHUNKS = 32
"""Chunks that the active roots together are ahead of the receiving links' rate: a root that wakes late then leaves no
link idle, since as many wait in its queue. Roots whose turn comes by a token find them there."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A root's place in the schedule.

    ``position``: place in its chain; the first begins without a token. ``successor``: the rank to hand the token to,
    None at the end of a chain. ``share``: by how many streams the receiving link's rate is divided. ``slot``: 0 ..
    share, the start's offset in send batches of one frame time each.
    """

    position: int
    successor: int | None
    share: int
    slot: int

    def offset_chunks(self, batch: int) -> int:
        """When to begin after being activated, in chunk times: at once if the turn came by a token."""
        return self.slot * batch if self.position == 0 else 0


def chain_bounds(roots: int, chains: int) -> list[tuple[int, int]]:
    """(first, stop) of each chain over ``roots`` roots; ``chains`` is cut to the number of roots."""
    count = min(roots, chains)
    return [(j * roots // count, (j + 1) * roots // count) for j in range(count)]


def turn(rank: int, roots: tuple[int, ...], size: int, chains: int | None) -> Turn | None:
    """The turn of ``rank`` among ``roots`` in a communicator of ``size`` ranks; None if it is no root."""
    if rank not in roots:
        return None
    position = roots.index(rank)
    bounds = chain_bounds(len(roots), chains or len(roots))
    slot, (first, stop) = next((j, b) for j, b in enumerate(bounds) if b[0] <= position < b[1])
    # Where every rank is a root at the same time, a receiver hears one stream less: its own.
    share = max(1, size - 1 if len(bounds) == size else len(bounds))
    successor = roots[position + 1] if position + 1 < stop else None
    return Turn(position - first, successor, share, slot)


def longest_chain(roots: int, chains: int | None) -> int:
    """Roots in the longest chain."""
    return max((stop - first for first, stop in chain_bounds(roots, chains or roots)), default=0)
