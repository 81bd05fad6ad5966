"""The fast path: a root multicasts each chunk once, paced; a receiver places chunks by number and marks a bitmap.

The receive side is the hot path: one call a batch, no Python per packet. Its staging ring is the packet ring itself,
whose slots are the posted receive buffers of an unreliable datagram queue pair (PAPER 1.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from endpoints.core.bitmap import Bitmap, Ids
from endpoints.core.blocks import BlockLayout
from endpoints.core.packets import U8, Chunks, UdBurst
from endpoints.core.serial import PSN_MASK

CATCH_UP_BATCHES = 8
"""Batches that a sender who overslept may send at once to be back on schedule."""


class Sender:
    """One root's stream: batch ``k`` leaves at ``start + k * interval`` whatever happened to the batches before."""

    def __init__(self, *, layout: BlockLayout, block: int, data: U8, trees: int, prefix: int, batch: int) -> None:
        self._layout = layout
        self._first = block * layout.chunks_per_block
        self._data = data
        self._trees = trees
        self._prefix = prefix
        self._batch = batch
        self._interval = 0
        self._start: int | None = None
        self.sent = 0

    @property
    def started(self) -> bool:
        """Whether it was this root's turn."""
        return self._start is not None

    @property
    def finished(self) -> bool:
        """Whether every chunk has been handed out."""
        return self.sent == self._layout.chunks_per_block

    def begin(self, at: int, chunk_interval_ns: int) -> None:
        """Send from ``at`` on, one chunk per interval on average."""
        self._start = at
        self._interval = chunk_interval_ns * self._batch

    def pace(self, now: int, chunk_interval_ns: int) -> None:
        """Go on at another interval: what is left of the last one is stretched or shortened, too."""
        at, before = self.next_at(), self._interval
        if at is None:
            return
        self._interval = chunk_interval_ns * self._batch
        left = min(max(0, at - now), before)
        self._start = at + left * self._interval // before - left - self.sent // self._batch * self._interval

    def shift(self, by_ns: int) -> None:
        """Send what is left so much later; sooner if negative, and at once what would be in the past."""
        if self._start is not None:
            self._start += by_ns

    def next_at(self) -> int | None:
        """When the next batch is due."""
        if self._start is None or self.finished:
            return None
        return self._start + self.sent // self._batch * self._interval

    def due(self, now: int) -> Iterator[UdBurst]:
        """The batches that are due, a burst per tree."""
        for _ in range(CATCH_UP_BATCHES):
            at = self.next_at()
            if at is None or at > now:
                return
            stop = min(self.sent + self._batch, self._layout.chunks_per_block)
            yield from self._bursts(range(self.sent, stop))
            self.sent = stop

    def _bursts(self, indices: range) -> Iterator[UdBurst]:
        mtu = self._layout.mtu
        for tree in range(self._trees):
            mine = [i for i in indices if i % self._trees == tree]
            if mine:
                chunks = np.array(mine, np.uint32) + np.uint32(self._first)
                yield UdBurst(
                    group=tree,
                    psn=chunks & np.uint32(PSN_MASK),
                    imm=chunks | np.uint32(self._prefix),
                    payloads=[self._data[i * mtu : (i + 1) * mtu] for i in mine],
                )


class Placement:
    """The receive buffer of one operation with its bitmap.

    ``roots`` are the ranks whose blocks the buffer holds, in order; ``prefix`` is the operation id in the immediate's
    upper bits; ``chunk_bits`` the bits below it. ``blocks`` is the memory, of shape (blocks, block bytes).
    """

    def __init__(
        self, *, layout: BlockLayout, roots: tuple[int, ...], blocks: U8, prefix: int, chunk_bits: int
    ) -> None:
        self.layout = layout
        self.bitmap = Bitmap(layout.chunks)
        self._blocks = blocks
        self._prefix = np.uint32(prefix)
        self._chunk_bits = chunk_bits
        self._per_block = max(1, layout.chunks_per_block)
        full, tail = layout.full_chunks, layout.tail_bytes
        self._uniform = tail == 0
        self._chunks = blocks.reshape(-1, layout.mtu) if self._uniform and blocks.flags.c_contiguous else None
        strides = (blocks.strides[0], layout.mtu, 1)
        self._full = as_strided(blocks, (layout.blocks, full, layout.mtu), strides)
        self._tails = blocks[:, full * layout.mtu :]
        self._owners = np.repeat(np.array(roots, np.int16), layout.chunks_per_block)
        self._ends_seen = 0

    def place(self, chunks: Chunks, counters: Counter[str]) -> int:
        """Copy a batch to its place; returns how many chunks were new. The rest is counted by reason."""
        ids = (chunks.imm ^ self._prefix).astype(np.int64)  # beyond all chunks if the operation is another
        try:
            good = (self._owners[ids] == chunks.src) & (chunks.length == self._lengths(ids))
        except IndexError:
            return self._place_good(ids, chunks, counters)
        if np.count_nonzero(good) < len(ids):
            return self._place_good(ids, chunks, counters)
        return self._store(ids, chunks.payload, counters)

    def _place_good(self, ids: Ids, chunks: Chunks, counters: Counter[str]) -> int:
        """Of a batch in which something is wrong, what is right."""
        ours = ids >> self._chunk_bits == 0
        inside = ids < self.layout.chunks
        rows = np.flatnonzero(inside)
        at = ids[rows]
        rows = rows[(self._owners[at] == chunks.src[rows]) & (chunks.length[rows] == self._lengths(at))]
        stale = len(ids) - int(np.count_nonzero(ours))
        if stale:
            counters["stale_operation"] += stale
        if len(ids) > len(rows) + stale:
            counters["bad_chunk"] += len(ids) - len(rows) - stale
        return self._store(ids[rows], chunks.payload[rows], counters) if len(rows) else 0

    def _lengths(self, ids: Ids) -> npt.NDArray[np.int64] | int:
        if self._uniform:
            return self.layout.mtu
        index = ids % self._per_block
        return np.where(index < self.layout.full_chunks, self.layout.mtu, self.layout.tail_bytes)

    def _store(self, ids: Ids, payload: U8, counters: Counter[str]) -> int:
        missing = self.bitmap.missing
        fresh = self.bitmap.mark(ids)
        count = missing - self.bitmap.missing
        if count < len(ids):
            counters["duplicates"] += len(ids) - count
            ids, payload = ids[fresh], payload[fresh]
        if self._chunks is not None:
            self._chunks[ids] = payload[:, : self.layout.mtu]
            return count
        block, index = np.divmod(ids, self._per_block)
        full = index < self.layout.full_chunks
        self._full[block[full], index[full]] = payload[full, : self.layout.mtu]
        self._tails[block[~full]] = payload[~full, : self.layout.tail_bytes]
        return count

    def place_one(self, chunk: int, payload: U8) -> bool:
        """Place one chunk that came over a reliable connection; false if it was here already."""
        if not self.bitmap.mark_one(chunk):
            return False
        block, index = divmod(chunk, self._per_block)
        start = index * self.layout.mtu
        self._blocks[block, start : start + len(payload)] = np.frombuffer(payload, np.uint8)
        return True

    def place_block(self, block: int, data: U8) -> None:
        """Put a rank's own block where it belongs, without the network."""
        self._blocks[block, : len(data)] = data
        self.bitmap.mark_range(block * self.layout.chunks_per_block, (block + 1) * self.layout.chunks_per_block)

    @property
    def complete(self) -> bool:
        """Whether every chunk is in place."""
        return self.bitmap.missing == 0

    def all_ends_seen(self) -> bool:
        """Whether the last chunk of every block is here: whatever else is missing was overtaken or lost."""
        blocks, per_block = self.layout.blocks, self._per_block
        while self._ends_seen < blocks and (self._ends_seen + 1) * per_block - 1 in self.bitmap:
            self._ends_seen += 1
        return self._ends_seen == blocks


def prefix_of(op: int, chunk_bits: int) -> int:
    """The immediate of operation ``op`` without its chunk: the id wraps in the bits above ``chunk_bits``."""
    return (op << chunk_bits) & 0xFFFFFFFF
