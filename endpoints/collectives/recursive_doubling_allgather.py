"""Recursive doubling Allgather: what a rank holds doubles in each of ceil(log2 P) steps.

Where P is a power of two, ranks whose numbers differ in one bit exchange all that they have (Thakur, Rabenseifner,
Gropp 2005, section 4.1). For any other P Bruck's algorithm (Bruck et al. 1997) takes as many steps, and to it
Open MPI falls back in that case, too; since a block has its place from the start, its final rotation is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from endpoints.collectives.point_to_point import point_to_point
from endpoints.core.schedule import Transfer, block


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """In step ``k`` rank ``r`` sends up to ``2^k`` blocks to rank ``r ^ 2^k``, or to rank ``r - 2^k``."""
    step = _exchange if ranks & (ranks - 1) == 0 else _bruck
    for k in range((ranks - 1).bit_length()):
        for rank in range(ranks):
            yield from step(rank, 1 << k, ranks, size)


def _exchange(rank: int, distance: int, ranks: int, size: int) -> Iterator[Transfer]:
    """Rank ``r`` holds the blocks of the ranks that differ from it in the bits below ``distance``."""
    del ranks
    yield block(rank, rank ^ distance, rank & -distance, size, distance)


def _bruck(rank: int, distance: int, ranks: int, size: int) -> Iterator[Transfer]:
    """Rank ``r`` holds the blocks ``r .. r + distance - 1``, modulo P; the last step sends fewer."""
    count = min(distance, ranks - distance)
    before_wrap = min(count, ranks - rank)
    to = (rank - distance) % ranks
    yield block(rank, to, rank, size, before_wrap)
    if before_wrap < count:
        yield block(rank, to, 0, size, count - before_wrap)


COLLECTIVE = point_to_point(
    "recursive_doubling_allgather", "allgather", "ranks exchange all that they have, over doubling distances", transfers
)
