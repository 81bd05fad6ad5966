"""Multicast Broadcast: rank 0 multicasts its buffer once (PAPER 1.1 to 1.7)."""

from __future__ import annotations

from endpoints.collectives.registry import Collective
from endpoints.core.multicast import ReliableMulticast
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8


def make(services: Services, op: int, data: U8, buffer: U8) -> Operation:
    """Rank 0 is the only root."""
    return ReliableMulticast(services, op, (0,), data if services.rank == 0 else None, buffer)


COLLECTIVE = Collective(
    "mcast_broadcast", "broadcast", "rank 0 multicasts its buffer once; lost chunks from a neighbour", make, True
)
