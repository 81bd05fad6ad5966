"""The memory of a kernel packet ring (TPACKET_V2) as numpy arrays: pure arithmetic on whatever memory it is given.

The ring is a row of blocks, each a row of slots; a slot holds a header, in which one word says whose it is, and a
frame at a fixed place (linux/if_packet.h and Documentation/networking/packet_mmap.rst). Columns over the slots of a
block are strided views, so that the state of many slots is read at once and frames are never copied.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from endpoints.core.packets import I32, U8

_ALIGNMENT: Final = 16
_STATUS, _LENGTH, _CAPTURED, _MAC, _SEC, _NSEC = 0, 4, 8, 12, 16, 20
_PKTTYPE: Final = 32 + 10
"""In the sockaddr_ll that follows the header."""

FRAME: Final = 66
"""Where a slot's Ethernet frame begins: the kernel puts the IP header at 80, a multiple of 16 behind both headers."""

_USER: Final = 1
_LARGEST_BLOCK: Final = 1 << 20
"""Blocks are contiguous kernel memory, so much larger ones may not be had; smaller ones waste more at their ends."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a ring in bytes: ``slot_size`` of one slot, ``block_size`` of each of ``blocks`` blocks."""

    slot_size: int
    block_size: int
    blocks: int

    @classmethod
    def for_frames(cls, longest: int, frames: int) -> Geometry:
        """The smallest ring with room for ``frames`` frames of ``longest`` bytes each."""
        if longest < 1 or frames < 1:
            raise ValueError(f"a ring for {frames} frames of {longest} bytes: both must be at least 1")
        slot = -(-(FRAME + longest) // _ALIGNMENT) * _ALIGNMENT
        block = mmap.PAGESIZE
        while block < slot or (block < slot * frames and block < _LARGEST_BLOCK):
            block *= 2
        return cls(slot, block, -(-frames // (block // slot)))

    @property
    def slots_per_block(self) -> int:
        return self.block_size // self.slot_size

    @property
    def slots(self) -> int:
        return self.blocks * self.slots_per_block

    @property
    def size(self) -> int:
        return self.blocks * self.block_size


class Slots:
    """Reads the slots of ``memory`` in turn, as the kernel fills them in turn."""

    def __init__(self, memory: mmap.mmap | bytearray, geometry: Geometry) -> None:
        self._geometry = geometry
        column = partial(_column, memory, geometry)
        self.status = column(np.uint32, _STATUS)
        self.length = column(np.int32, _LENGTH)
        self.captured: npt.NDArray[np.int32] = column(np.int32, _CAPTURED)
        self.mac = column(np.uint16, _MAC)
        self.sec = column(np.uint32, _SEC)
        self.nsec = column(np.uint32, _NSEC)
        self.pkttype = column(np.uint8, _PKTTYPE)
        self.frames: U8 = np.ndarray(
            (geometry.blocks, geometry.slots_per_block, geometry.slot_size - FRAME),
            np.uint8,
            memory,
            FRAME,
            (geometry.block_size, geometry.slot_size, 1),
        )
        self._block = 0
        self._first = 0

    def ready(self, limit: int) -> tuple[int, slice]:
        """The block of the next slots and which of them the kernel has filled: at most ``limit``, none behind a gap.

        Slots of the next block come with the next call, once these have been released.
        """
        first = self._first
        # x86 keeps the order of loads. Elsewhere numpy's own call between this load and the frame's is all there is.
        owned = self.status[self._block, first : first + limit] & _USER
        n = len(owned)
        if n and not owned.all():
            n = int(owned.argmin())
        return self._block, slice(first, first + n)

    def take(self, limit: int) -> tuple[U8, I32]:
        """Frames that have come, shape (n, stride), n at most ``limit``, and their lengths as far as they were kept."""
        block, run = self.ready(limit)
        return self.frames[block, run], self.captured[block, run]

    @property
    def at_border(self) -> bool:
        """Whether a block ended with what was released last: of what has come, there may be more in the next one."""
        return self._first == 0

    def release(self, n: int) -> None:
        """Give the first ``n`` slots of those taken back to the kernel; their frames may be overwritten from now on."""
        end = self._first + n
        if not 0 <= n <= self._geometry.slots_per_block - self._first or not self._filled(end):
            raise ValueError(f"release of {n} slots: not so many have been taken")
        self.status[self._block, self._first : end] = 0
        if end == self._geometry.slots_per_block:
            self._block = (self._block + 1) % self._geometry.blocks
            end = 0
        self._first = end

    def _filled(self, end: int) -> bool:
        return bool((self.status[self._block, self._first : end] & _USER).all())


def _column(memory: mmap.mmap | bytearray, g: Geometry, kind: npt.DTypeLike, offset: int) -> npt.NDArray[Any]:
    """A field of every slot's header, by block and slot."""
    return np.ndarray((g.blocks, g.slots_per_block), kind, memory, offset, (g.block_size, g.slot_size))
