"""Ring Allgather: every block goes once round the ring, each rank handing on what its left neighbour gave it.

P - 1 blocks in and out of every rank, all links between neighbours busy all the time: it needs N (P - 1) bytes of each
link, as many as any point-to-point Allgather must receive (Thakur, Rabenseifner, Gropp 2005, section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from endpoints.collectives.point_to_point import point_to_point
from endpoints.core.schedule import Transfer, block


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """In step ``s`` rank ``r`` sends the block of rank ``r - s`` to rank ``r + 1``."""
    for step in range(ranks - 1):
        for rank in range(ranks):
            yield block(rank, (rank + 1) % ranks, (rank - step) % ranks, size)


COLLECTIVE = point_to_point(
    "ring_allgather", "allgather", "every block goes round the ring, from neighbour to neighbour", transfers
)
