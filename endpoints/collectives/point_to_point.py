"""What the point-to-point algorithms share: a schedule in, an algorithm out."""

from __future__ import annotations

from typing import Literal

from endpoints.collectives.registry import Collective
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8
from endpoints.core.schedule import Schedule
from endpoints.core.transfers import ScheduledTransfers


def point_to_point(name: str, kind: Literal["allgather", "broadcast"], summary: str, transfers: Schedule) -> Collective:
    """The algorithm that carries out ``transfers``."""

    def make(services: Services, op: int, data: U8, buffer: U8) -> Operation:
        """A rank's own block is where its rank says; Broadcast's only block is rank 0's."""
        ranks = services.comm.size
        size = buffer.size // ranks if kind == "allgather" else buffer.size
        own = services.rank * size if kind == "allgather" else 0
        return ScheduledTransfers(services, op, transfers(ranks, size), data, buffer, own)

    return Collective(name, kind, summary, make, transfers=transfers)
