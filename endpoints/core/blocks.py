"""Where each chunk lives: blocks of one size, one per root, cut into MTU-sized chunks numbered across all blocks.

``chunk = block * chunks_per_block + index``; it starts at byte ``block * block_bytes + index * mtu`` of the receive
buffer and the last of a block may be short. Placement needs nothing but the number (PAPER 1.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from endpoints.core.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """``blocks`` blocks of ``block_bytes`` bytes at chunks of ``mtu`` bytes."""

    blocks: int
    block_bytes: int
    mtu: int

    @property
    def chunks_per_block(self) -> int:
        """Chunks that one block is cut into."""
        return -(-self.block_bytes // self.mtu)

    @property
    def chunks(self) -> int:
        """Chunks altogether."""
        return self.blocks * self.chunks_per_block

    @property
    def total_bytes(self) -> int:
        """Bytes of the whole receive buffer."""
        return self.blocks * self.block_bytes

    @property
    def full_chunks(self) -> int:
        """Chunks of a block that are a whole MTU long."""
        return self.block_bytes // self.mtu

    @property
    def tail_bytes(self) -> int:
        """Bytes of a block's short last chunk; 0 where there is none."""
        return self.block_bytes % self.mtu

    def block_of(self, chunk: int) -> int:
        """The block that a chunk belongs to."""
        return chunk // self.chunks_per_block

    def length(self, chunk: int) -> int:
        """Payload bytes of one chunk."""
        return self.mtu if chunk % self.chunks_per_block < self.full_chunks else self.tail_bytes

    def offset(self, chunk: int) -> int:
        """First byte of a chunk in the receive buffer."""
        block, index = divmod(chunk, self.chunks_per_block)
        return block * self.block_bytes + index * self.mtu

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """(offset, bytes) of the chunks ``first .. stop - 1``, which must lie in one block."""
        start = self.offset(first)
        return start, self.offset(stop - 1) + self.length(stop - 1) - start

    def pieces(self, first: int, stop: int, limit: int) -> Iterator[tuple[int, int]]:
        """Cut ``first .. stop - 1`` at block borders and into at most ``limit`` chunks."""
        while first < stop:
            border = (self.block_of(first) + 1) * self.chunks_per_block
            end = min(stop, border, first + limit)
            yield first, end
            first = end

    def check_numbering(self, chunk_bits: int) -> None:
        """Refuse a buffer whose chunks cannot be numbered with ``chunk_bits`` bits."""
        if self.chunks > 1 << chunk_bits:
            raise ProtocolError(
                f"{self.total_bytes} bytes are {self.chunks} chunks of {self.mtu}: the immediate numbers at most "
                f"{1 << chunk_bits} ({chunk_bits} bits); use a larger MTU, fewer bytes or fewer operation bits"
            )
