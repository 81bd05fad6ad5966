"""A queue in shared memory between two processes: one puts entries in, the other takes them out, and neither locks.

As in the queues of NVMe and of RDMA NICs, an entry says itself whether it is there: it ends with a word that holds its
number and a CRC-32 of number and entry. So an entry that its writer did not live to finish, or of which a processor has
only seen a part so far, is not there yet, and one of the last time round is not mistaken for the next. How far the
reader is stands in a line of its own, by which the writer sees that there is room. Whatever the other side writes, it
costs no more than entries: nothing is read or written outside of the queue.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from endpoints.core.packets import U8

LINE: Final = 64
"""Bytes of a cache line, so that reader and writer do not share one."""

_WORD: Final = 8
_NUMBERS: Final = 1 << 32


class QueueFull(Exception):
    """As many entries as the queue has are outstanding."""


class QueueBroken(Exception):
    """The other side is where it cannot be."""


def queue_bytes(entry: struct.Struct, depth: int) -> int:
    """Bytes of a queue's memory."""
    return LINE + depth * _stride(entry)


def _stride(entry: struct.Struct) -> int:
    return -(-(entry.size + _WORD) // LINE) * LINE


class _Queue:
    """``depth`` entries in ``memory``, which is :func:`queue_bytes` long, aligned to words, and zero at first."""

    def __init__(self, memory: U8, entry: struct.Struct, depth: int) -> None:
        if depth < 1 or len(memory) != queue_bytes(entry, depth):
            raise ValueError(f"a queue of {depth} entries of {entry.size} bytes is not {len(memory)} bytes long")
        self._entry = entry
        self._depth = depth
        self._count = 0
        """Entries put in, or taken out, by this end."""
        self._taken: npt.NDArray[np.uint64] = memory[:_WORD].view(np.uint64)
        self._entries = memory[LINE:].reshape(depth, -1)
        self._words: npt.NDArray[np.uint64] = self._entries[:, -_WORD:].view(np.uint64)[:, 0]

    def _word(self, packed: bytes) -> int:
        """What ends the entry that comes next."""
        number = (self._count + 1) % _NUMBERS
        return zlib.crc32(packed, number) << 32 | number


class Writer(_Queue):
    """The end that puts entries in."""

    @property
    def room(self) -> int:
        """Entries that may be put in; :class:`QueueBroken` if the reader is where it cannot be."""
        taken = int(self._taken[0])
        if not self._count - self._depth <= taken <= self._count:
            raise QueueBroken(f"{taken} entries taken, {self._count} put in, {self._depth} held at most")
        return self._depth - (self._count - taken)

    def put(self, packed: bytes) -> None:
        """Put an entry in; :class:`QueueFull` if there is no room."""
        if len(packed) != self._entry.size:
            raise ValueError(f"an entry has {self._entry.size} bytes, not {len(packed)}")
        if not self.room:
            raise QueueFull(f"{self._depth} entries are outstanding, which is all there is room for")
        slot = self._count % self._depth
        self._entries[slot, : len(packed)] = np.frombuffer(packed, np.uint8)
        self._words[slot] = self._word(packed)  # last, and in one piece: it is an aligned word
        self._count += 1


class Reader(_Queue):
    """The end that takes entries out."""

    @property
    def empty(self) -> bool:
        """Whether there is certainly nothing; if not, :meth:`take` decides."""
        return int(self._words[self._count % self._depth]) % _NUMBERS != (self._count + 1) % _NUMBERS

    def take(self) -> bytes | None:
        """The next entry; None if there is none."""
        if self.empty:
            return None
        slot = self._count % self._depth
        packed = self._entries[slot, : self._entry.size].tobytes()
        if int(self._words[slot]) != self._word(packed):
            return None
        self._count += 1
        self._taken[0] = self._count
        return packed
