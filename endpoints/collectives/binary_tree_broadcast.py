"""Pipelined binary tree Broadcast: rank ``r`` hands each segment on to ranks ``2 r + 1`` and ``2 r + 2``.

A rank sends every byte twice, so at best the message arrives at half the link's rate; the depth, log2 P segments, is
what the pipeline takes to fill.
"""

from __future__ import annotations

from collections.abc import Iterator

from endpoints.collectives.point_to_point import point_to_point
from endpoints.core.schedule import Transfer, segment_bytes, segments


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """Segment by segment, so that both children are served by turns."""
    for offset, length in segments(size, segment_bytes(size)):
        for child in range(1, ranks):
            yield Transfer((child - 1) // 2, child, offset, length)


COLLECTIVE = point_to_point(
    "binary_tree_broadcast", "broadcast", "segments go down a binary tree, in a pipeline", transfers
)
