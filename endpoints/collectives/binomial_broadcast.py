"""Binomial tree Broadcast: the ranks that have the message double in each of ceil(log2 P) steps.

The order is MPICH's: a rank first serves the child with the largest subtree, which has most left to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from endpoints.collectives.point_to_point import point_to_point
from endpoints.core.schedule import Transfer


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """With ``d`` halved in each step, every rank that is a multiple of ``2 d`` sends the message to rank ``r + d``."""
    for k in reversed(range((ranks - 1).bit_length())):
        distance = 1 << k
        for rank in range(0, ranks - distance, 2 * distance):
            yield Transfer(rank, rank + distance, 0, size)


COLLECTIVE = point_to_point(
    "binomial_broadcast", "broadcast", "the ranks that have the message double in each step", transfers
)
