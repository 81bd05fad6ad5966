"""How a block is spread over a NIC's workers."""

from __future__ import annotations

from itertools import pairwise


def stripes(block_bytes: int, mtu: int, workers: int) -> tuple[tuple[int, int], ...]:
    """The bytes (start, stop) of a block that each worker carries: whole chunks of ``mtu`` bytes, one behind the other.

    They differ by at most a chunk. Workers beyond the number of chunks have nothing.
    """
    chunks = -(-block_bytes // mtu)
    borders = [min(block_bytes, chunks * worker // workers * mtu) for worker in range(workers + 1)]
    return tuple(pairwise(borders))
