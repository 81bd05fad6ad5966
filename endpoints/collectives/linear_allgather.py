"""Direct Allgather: every rank sends its own block to each of the others, and nobody hands anything on.

In step ``s`` all ranks send to the rank ``s`` further on, so that no two of them send to the same one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from endpoints.collectives.point_to_point import point_to_point
from endpoints.core.schedule import Transfer, block


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """In step ``s`` rank ``r`` sends its block to rank ``r + s``."""
    for step in range(1, ranks):
        for rank in range(ranks):
            yield block(rank, (rank + step) % ranks, rank, size)


COLLECTIVE = point_to_point(
    "linear_allgather", "allgather", "every rank sends its block to each of the others", transfers
)
