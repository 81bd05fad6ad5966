"""The slow path: fetch what the multicast did not bring, from a neighbour who has it (PAPER 1.6).

It runs beside the fast path from the first loss that :class:`Overtaken` is sure of, and alone after the cutoff.

A receiver asks (FETCH) its left neighbour, rank - 1, for what its bitmap lacks; the neighbour says what it has (READY)
and the receiver READs it. What the neighbour lacks itself it remembers and announces once it has it, so that in the
worst case a request walks back, hop by hop, to the root. Waiting edges go one way round the ring and end at the owner
of the chunk: no cycle, no deadlock.

What is READ at a time fits into a window, whoever supplies it: many suppliers share the receiver's one link, and each
alone could fill its queues. After a failure of the whole network everything is missing everywhere.

A supplier that dies, has finished, or supplies nothing at all for the patience time is replaced, block by block: first
by the block's owner, then by each other rank in turn. Once the owner is lost all others are asked at once: what none of
them has nobody will ever have. When nobody is left, or nobody has it, the operation fails and names the owner. While
nobody at all is heard no supplier is to blame, and none is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from endpoints.core.bitmap import runs
from endpoints.core.fast_path import Placement
from endpoints.core.messages import Kind, Ranges

Flags = npt.NDArray[np.bool_]


LAST_ROUNDS = 4
"""How often all others are asked for a lost owner's block, a patience apart: as long as a peer may be silent."""


class Wire(Protocol):
    """What the slow path needs of the endpoint."""

    def send_ranges(self, peer: int, kind: Kind, ranges: Ranges) -> None:
        """Send ranges of chunks reliably."""

    def read(self, peer: int, first: int, stop: int) -> None:
        """READ chunks of one block from a peer's receive buffer."""


def flags_of(ranges: Ranges, size: int) -> Flags:
    """Ranges as booleans, shape (size,); what lies outside is cut off."""
    flags = np.zeros(size, np.bool_)
    for first, stop in ranges:
        flags[first:stop] = True
    return flags


class Overtaken:
    """Tells lost chunks from late ones while the multicast goes on: two looks at the bitmap, a reordering time apart.

    A root sends its chunks in order. What is missing below the highest chunk of its block that was here at the last
    look had that long to come, and is lost (the idea of RFC 8985, section 6, for multicast).
    """

    def __init__(self, placement: Placement) -> None:
        self._bitmap = placement.bitmap
        self._shape = (placement.layout.blocks, placement.layout.chunks_per_block)
        self.settled: Flags = np.zeros(placement.layout.chunks, np.bool_)
        """The chunks below the highest of their block at the last look, shape (chunks,)."""

    def look(self) -> Flags:
        """Note what is here now; returns the chunks that are lost by what was here at the look before."""
        here = self._bitmap.bits()
        lost = self.settled & ~here
        backwards = here.reshape(self._shape)[:, ::-1]
        highest = self._shape[1] - backwards.argmax(axis=1)
        edges = np.where(backwards.any(axis=1), highest, 0)[:, None]
        self.settled = (np.arange(self._shape[1]) < edges).ravel()
        return lost


class Supplier:
    """Answers the FETCHes of others: with all that is here, or only with what is ``settled`` in the own fast path.

    Otherwise an early cutoff at one rank would have everything that is still on its way sent twice. ``settled`` gives
    flags of chunks, None after the fast path; ``unsent`` the own chunks that are still to be multicast.
    """

    def __init__(
        self,
        placement: Placement,
        wire: Wire,
        settled: Callable[[], Flags | None],
        unsent: Callable[[], tuple[int, int]],
    ) -> None:
        self._placement = placement
        self._wire = wire
        self._settled = settled
        self._unsent = unsent
        self._wanted: dict[int, Flags] = {}

    def fetch(self, peer: int, ranges: Ranges) -> None:
        """A peer lacks these chunks. What is here is announced at once, the rest when it comes."""
        size = self._placement.bitmap.size
        wanted = self._wanted.setdefault(peer, np.zeros(size, np.bool_))
        wanted |= flags_of(ranges, size)
        self.progress()

    def progress(self) -> None:
        """Announce what has come since to those who wait for it."""
        if not self._wanted:
            return
        here = self._placement.bitmap.bits()
        first, stop = self._unsent()
        here[first:stop] = False  # the multicast is about to bring them: no need to send them twice
        settled = self._settled()
        if settled is not None:
            here &= settled
        for peer in list(self._wanted):
            self._announce(peer, here)

    def _announce(self, peer: int, here: Flags) -> None:
        wanted = self._wanted[peer]
        ready = runs(wanted & here)
        if ready:
            self._wire.send_ranges(peer, Kind.READY, ready)
            wanted &= ~here
        if not wanted.any():
            del self._wanted[peer]


class Exhausted(Exception):
    """No rank is left that could supply a block; ``owner`` is the block's root."""

    def __init__(self, owner: int) -> None:
        super().__init__(owner)
        self.owner = owner


class Recovery:
    """Fetches what is missing; one search (a position in the order of suppliers) for each incomplete block.

    READs are for at most ``piece`` chunks each, and for about ``window`` at a time.
    """

    def __init__(
        self, *, rank: int, size: int, roots: tuple[int, ...], placement: Placement, wire: Wire, piece: int, window: int
    ) -> None:
        self._rank = rank
        self._size = size
        self._roots = roots
        self._placement = placement
        self._wire = wire
        self._piece = piece
        self._window = window
        self._stage: dict[int, int] = {}
        self._since: dict[int, int] = {}
        self._supplied_at: dict[int, int] = {}
        self._asked = np.zeros(placement.layout.chunks, np.bool_)
        self._promised: dict[int, Flags] = {}
        """What each supplier has and is still to be READ from it, as far as it is missing."""
        self._reading = np.zeros(placement.layout.chunks, np.bool_)
        self._lost: set[int] = set()
        self._rounds: dict[int, int] = {}
        """How often all were asked in vain for a block whose owner is lost."""

    def _suppliers(self, root: int) -> list[int]:
        """The order of suppliers for one root's block: left neighbour, owner, then the others leftwards."""
        left = [(self._rank - step) % self._size for step in range(1, self._size)]
        order = [left[0], root, *left[1:]]
        return [rank for at, rank in enumerate(order) if rank != self._rank and rank not in order[:at]]

    def supplier_of(self, block: int) -> int:
        """Who is being asked for a block now."""
        return self._suppliers(self._roots[block])[self._stage[block]]

    def _asked_for(self, block: int) -> list[int]:
        """Who is being asked for a block now: one, or everybody else where its owner is lost."""
        root = self._roots[block]
        if root not in self._lost:
            return [self.supplier_of(block)]
        return [rank for rank in self._suppliers(root) if rank not in self._lost]

    def _by_block(self, flags: Flags) -> dict[int, list[tuple[int, int]]]:
        found: dict[int, list[tuple[int, int]]] = {}
        layout = self._placement.layout
        for first, stop in runs(flags):
            for piece in layout.pieces(first, stop, layout.chunks_per_block):
                found.setdefault(layout.block_of(piece[0]), []).append(piece)
        return found

    def _missing(self) -> Flags:
        return ~self._placement.bitmap.bits()

    def want(self, lost: Flags, now: int) -> int:
        """Ask for those of the lost chunks that nobody was asked for yet; returns how many these are."""
        fresh = lost & ~self._asked
        wanted = self._by_block(fresh)
        for block in wanted:
            self._stage.setdefault(block, 0)
            self._skip_lost(block)
        self._ask(wanted, now)
        return int(np.count_nonzero(fresh))

    def want_all(self, now: int) -> None:
        """The fast path is over: all that is missing is lost, and every supplier has its full time from now on."""
        self.want(self._missing(), now)
        self._since = dict.fromkeys(self._since, now)

    def _skip_lost(self, block: int) -> None:
        """Go round the order of suppliers to the next that may still answer."""
        order = self._suppliers(self._roots[block])
        if self._lost.issuperset(order):
            raise Exhausted(self._roots[block])
        while order[self._stage[block] % len(order)] in self._lost:
            self._stage[block] += 1
        self._stage[block] %= len(order)

    def _ask(self, missing: dict[int, list[tuple[int, int]]], now: int) -> None:
        questions: dict[int, list[tuple[int, int]]] = {}
        for block, ranges in missing.items():
            for supplier in self._asked_for(block):
                questions.setdefault(supplier, []).extend(ranges)
            self._since[block] = now
            for first, stop in ranges:
                self._asked[first:stop] = True
        for supplier, ranges in questions.items():
            self._wire.send_ranges(supplier, Kind.FETCH, ranges)

    def ready(self, peer: int, ranges: Ranges, now: int) -> None:
        """A supplier has these chunks: READ those that are still missing and not being read."""
        self.arrived(peer, now)
        has = flags_of(ranges, self._placement.layout.chunks)
        self._promised[peer] = self._promised.get(peer, False) | has
        self.read_on()

    def read_on(self) -> None:
        """READ of what is promised as much as the window has room for."""
        if not self._promised:
            return
        layout, missing = self._placement.layout, self._missing()
        room = self._window - np.count_nonzero(self._reading & missing)
        for peer, has in list(self._promised.items()):
            for first, stop in runs(has & missing & ~self._reading):
                for piece in layout.pieces(first, stop, self._piece):
                    if room <= 0:
                        return
                    room -= piece[1] - piece[0]
                    self._reading[piece[0] : piece[1]] = True
                    self._wire.read(peer, *piece)
            del self._promised[peer]

    def arrived(self, peer: int, now: int) -> None:
        """Something came from a supplier: whatever else it was asked for waits in its turn."""
        self._supplied_at[peer] = now
        self._rounds.clear()

    def multicast_arrived(self, now: int) -> None:
        """The fast path goes on after all: every search has time again."""
        self._since = dict.fromkeys(self._since, now)

    def lose(self, peer: int, now: int) -> None:
        """A peer cannot supply any more: go on with the next for every block that it was asked for."""
        self._lost.add(peer)
        self._promised.pop(peer, None)
        self._advance([b for b in self._stage if peer in (self.supplier_of(b), self._roots[b])], now)

    def impatient(self, now: int, patience: int, heard_at: int) -> None:
        """Replace suppliers that have supplied nothing for ``patience`` ns; forget the blocks that are complete.

        ``heard_at`` is when anything was last heard of anybody.
        """
        missing = self._by_block(self._missing())
        for block in [block for block in self._stage if block not in missing]:
            del self._stage[block], self._since[block]
        if now - heard_at >= patience:
            self._since = dict.fromkeys(self._since, now)  # nobody is heard, so that nobody is to blame
            return
        stuck = [block for block in self._stage if now - self._quiet_since(block) >= patience]
        for block in stuck:
            self._count_round(block)
        self._advance(stuck, now)

    def _count_round(self, block: int) -> None:
        """All others were asked for the block, its owner being lost, and none of them has supplied anything since."""
        root = self._roots[block]
        if root in self._lost:
            self._rounds[block] = self._rounds.get(block, 0) + 1
            if self._rounds[block] == LAST_ROUNDS:
                raise Exhausted(root)

    def _quiet_since(self, block: int) -> int:
        """Since when nobody who was asked for the block has supplied anything."""
        return max(self._since[block], *(self._supplied_at.get(peer, 0) for peer in self._asked_for(block)))

    def _advance(self, blocks: list[int], now: int) -> None:
        missing = self._by_block(self._missing())
        stuck = [block for block in blocks if block in missing]
        for block in stuck:
            self._forget(block)
            self._stage[block] += 1
            self._skip_lost(block)
        self._ask({block: missing[block] for block in stuck}, now)
        self.read_on()

    def _forget(self, block: int) -> None:
        """What was promised and requested of a block will not come."""
        size = self._placement.layout.chunks_per_block
        chunks = slice(block * size, (block + 1) * size)
        self._reading[chunks] = False
        for has in self._promised.values():
            has[chunks] = False

    def next_impatience(self, patience: int) -> int | None:
        """When :meth:`impatient` should be called next."""
        return min((self._quiet_since(block) + patience for block in self._since), default=None)
