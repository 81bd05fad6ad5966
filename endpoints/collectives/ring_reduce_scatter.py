"""Ring Reduce-Scatter: every block goes once round the ring, and each rank adds what it has to give.

Block ``b`` sets out from rank ``b + 1`` and ends at rank ``b``, whose it is. P - 1 blocks go in and out of every rank,
the least that there is without reduction in the network: it is the first half of the bandwidth-optimal Allreduce of
Patarasu and Yuan (2009). A sum is made in the order of the ring, ``(d[b+1] + d[b+2]) + ... + d[b]``, so that it is
the same to the last bit in every run, whatever is lost or late.

Peers write into scratch memory, and no sum is ever made there. So a WRITE that is placed again does no harm at whatever
time, and what a repeat reads is what was sent at first: each piece is added once, when the schedule expects it, into
memory of its own, which lives until it has been acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endpoints.collectives.elements import ELEMENT_BYTES, Element
from endpoints.collectives.registry import Collective, Make
from endpoints.core.errors import ProtocolError
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8
from endpoints.core.receive_buffer import ReceiveBuffer
from endpoints.core.schedule import Transfer, block
from endpoints.core.transfers import ScheduledTransfers


def transfers(ranks: int, size: int) -> Iterator[Transfer]:
    """In step ``s`` rank ``r`` sends the block of rank ``r - 1 - s`` to rank ``r + 1``."""
    for step in range(ranks - 1):
        for rank in range(ranks):
            yield block(rank, (rank + 1) % ranks, (rank - 1 - step) % ranks, size)


class RingReduceScatter(ScheduledTransfers):
    """One rank's part; ``data`` has P blocks, one behind the other or apart as those of a ``ReceiveBuffer``.

    ``buffer`` receives the sum of this rank's block, and is as long as one.
    """

    def __init__(self, services: Services, op: int, data: U8, buffer: U8, element: Element) -> None:
        ranks, rank, size = services.comm.size, services.rank, buffer.size
        if size % ELEMENT_BYTES or data.size != ranks * size:
            raise ProtocolError(
                f"{data.size} bytes for blocks of {size}: give {ranks} blocks of elements of {ELEMENT_BYTES} bytes"
            )
        self._element = element
        self._size = size
        self._own = ReceiveBuffer(data).blocks(ranks)
        self._result = ReceiveBuffer(buffer).blocks(1)[0]
        self._sums: dict[int, U8] = {}
        """What has been added and is to be handed on, by the offset of the piece."""
        first = (rank - 1) % ranks
        if first == rank:  # nobody else has anything to add
            self._result[:] = self._own[rank]
        scratch = np.empty(ranks * size, np.uint8)
        scratch.fill(0)  # has it in memory now, before time counts
        super().__init__(services, op, transfers(ranks, size), self._own[first], scratch, first * size)

    def _take(self, offset: int, size: int) -> None:
        index, at = divmod(offset, self._size)
        if index == self._s.rank:
            total = self._result[at : at + size]
        else:
            total = self._sums[offset] = np.empty(size, np.uint8)
        self._element.add(super()._payload(offset, size), self._own[index, at : at + size], total)

    def _payload(self, offset: int, size: int) -> U8:
        total = self._sums.pop(offset, None)
        return super()._payload(offset, size) if total is None else total


def adding(element: Element) -> Make:
    """Reduce-Scatter of such elements."""

    def make(services: Services, op: int, data: U8, buffer: U8) -> Operation:
        return RingReduceScatter(services, op, data, buffer, element)

    return make


COLLECTIVE = Collective(
    "ring_reduce_scatter",
    "reduce_scatter",
    "every block goes round the ring, and each rank adds its own",
    adding(Element.UINT32),
    transfers=transfers,
    typed=adding,
)
