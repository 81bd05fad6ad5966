"""A point-to-point collective as a pure value: who sends which bytes to whom, in which order.

Every byte has one place, the same in the receive buffer of each rank, so that a transfer needs but one offset and says
all there is to say about what it waits for: a rank may send a byte once it has it. A schedule is a sequence of
transfers in which each rank finds its own, in the order in which it should send them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

SEGMENT_BYTES = 8192
"""Smallest segment of a pipelined Broadcast: two packets of 4 KiB."""

LARGEST_SEGMENT = 4 * SEGMENT_BYTES
SEGMENTS = 128
"""Segments that a message is cut into between these sizes: enough that filling a pipeline takes little of the time."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Rank ``src`` sends ``size`` bytes at ``offset`` of its receive buffer to the same place of rank ``dst``'s."""

    src: int
    dst: int
    offset: int
    size: int

    @property
    def stop(self) -> int:
        """First byte behind it."""
        return self.offset + self.size


Schedule = Callable[[int, int], Iterable[Transfer]]
"""(ranks, bytes per rank; for Broadcast of the message) -> the transfers of the whole operation."""


def block(src: int, dst: int, index: int, size: int, blocks: int = 1) -> Transfer:
    """The transfer of ``blocks`` neighbouring blocks of ``size`` bytes, the first of which is number ``index``."""
    return Transfer(src, dst, index * size, blocks * size)


def segment_bytes(size: int) -> int:
    """Bytes of a segment of a message of ``size`` bytes that goes through a pipeline."""
    return min(LARGEST_SEGMENT, max(1, size // (SEGMENTS * SEGMENT_BYTES)) * SEGMENT_BYTES)


def segments(size: int, at_most: int) -> Iterator[tuple[int, int]]:
    """Cut ``size`` bytes into (offset, bytes) of at most ``at_most`` each."""
    for offset in range(0, size, at_most):
        yield offset, min(at_most, size - offset)
