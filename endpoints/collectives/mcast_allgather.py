"""Multicast Allgather: P reliable broadcasts, sequenced in chains (PAPER 1.8)."""

from __future__ import annotations

from endpoints.collectives.registry import Collective
from endpoints.core.multicast import ReliableMulticast
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8


def make(services: Services, op: int, data: U8, buffer: U8) -> Operation:
    """Every rank is a root."""
    return ReliableMulticast(services, op, tuple(range(services.comm.size)), data, buffer)


COLLECTIVE = Collective(
    "mcast_allgather", "allgather", "every rank multicasts its block once; lost chunks from a neighbour", make, True
)
