"""Pipelined chain Broadcast: rank ``r`` hands each segment on to rank ``r + 1``.

Every rank sends each byte once, so a long message arrives at the link's full rate, P - 2 segments late.
"""

from __future__ import annotations

from collections.abc import Iterator

from endpoints.collectives.point_to_point import point_to_point
from endpoints.core.schedule import Transfer, segment_bytes, segments


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """Segment by segment, from each rank to the next."""
    for offset, length in segments(size, segment_bytes(size)):
        for rank in range(ranks - 1):
            yield Transfer(rank, rank + 1, offset, length)


COLLECTIVE = point_to_point("chain_broadcast", "broadcast", "segments go from rank to rank, in a pipeline", transfers)
