"""A receive buffer whose blocks may lie apart, addressed as if they did not.

A worker of a NIC carries a stripe of every block, and a round a slice of it: what it receives then consists of equal
pieces of memory, one of each block, whole blocks apart. Its addresses count its own bytes alone, one block after the
other, and are the same on every rank wherever the memory is.
"""

from __future__ import annotations

import numpy as np

from endpoints.core.errors import ProtocolError
from endpoints.core.packets import U8


class ReceiveBuffer:
    """``memory`` is of shape (bytes,), or (blocks, bytes of a block) with the bytes of each block side by side."""

    def __init__(self, memory: U8) -> None:
        memory = np.asarray(memory)  # a memory map's own slices are slow
        if memory.ndim > 2 or (memory.size and memory.strides[-1] != 1):
            raise ProtocolError("a receive buffer's memory is (bytes,) or (blocks, bytes), bytes side by side")
        self._memory = memory
        self._flat = memory.reshape(-1) if memory.flags.c_contiguous else None
        self.size = memory.size
        """Bytes altogether."""
        self.piece_bytes = self.size if self._flat is not None else memory.shape[1]
        """An address that is a multiple of this may lie anywhere; those up to the next one follow each other."""

    def blocks(self, count: int) -> U8:
        """All of it as ``count`` equal blocks, shape (count, bytes of one); ProtocolError if it is no such buffer."""
        if self._flat is not None:
            if count == 0 or self.size % count:
                raise ProtocolError(f"a receive buffer of {self.size} bytes does not hold {count} equal blocks")
            return self._flat.reshape(count, -1 if self.size else 0)
        if len(self._memory) != count:
            raise ProtocolError(f"a receive buffer of {len(self._memory)} blocks is not one of {count}")
        return self._memory

    def view(self, at: int, length: int) -> U8 | None:
        """``length`` bytes from address ``at`` on; None if they are not in it, or not side by side."""
        if not 0 <= at <= at + length <= self.size:
            return None
        if self._flat is not None:
            return self._flat[at : at + length]
        row, start = divmod(at, self.piece_bytes)
        if length == 0:
            return self._memory[0, :0]
        return self._memory[row, start : start + length] if start + length <= self.piece_bytes else None
