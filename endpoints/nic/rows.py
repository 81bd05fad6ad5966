"""Which bytes of registered memory a work request means: rows of one length, all as far apart.

What a rank gives or receives consists of blocks, one behind the other. A worker carries a stripe of each block, and a
round a slice of each stripe; both are rows, and a whole buffer is a single one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from endpoints.core.packets import U8


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows of ``length`` bytes, ``stride`` apart, from ``offset`` on of the memory ``key``."""

    key: int
    offset: int
    length: int
    stride: int
    count: int

    @classmethod
    def blocks(cls, key: int, offset: int, size: int, count: int) -> Rows:
        """``size`` bytes as ``count`` equal blocks; ValueError where they are not."""
        if size % count:
            raise ValueError(f"{size} bytes are not {count} equal blocks")
        return cls(key, offset, size // count, size // count, count)

    def part(self, start: int, stop: int) -> Rows:
        """The bytes ``start`` to ``stop`` of every row."""
        return replace(self, offset=self.offset + start, length=stop - start)

    @property
    def end(self) -> int:
        """The first byte behind the last row, from the start of the memory."""
        return self.offset + self.stride * (self.count - 1) + self.length

    def view(self, memory: U8) -> U8:
        """These bytes of ``memory``: 1-D where the rows are one behind the other, else of shape (count, length).

        ValueError where they are not in the memory, or overlap.
        """
        if self.count < 1 or self.end > len(memory) or (self.count > 1 and self.stride < self.length):
            raise ValueError(f"{self} is not in {len(memory)} bytes")
        if self.count == 1 or self.stride == self.length:
            return memory[self.offset : self.end]
        shape, strides = (self.count, self.length), (self.stride, 1)
        return np.ndarray(shape, np.uint8, memory, self.offset, strides)
