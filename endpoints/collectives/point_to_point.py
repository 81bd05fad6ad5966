"""What the point-to-point algorithms share: a schedule in, an algorithm out."""

from __future__ import annotations

from endpoints.collectives.kinds import KINDS, KindName
from endpoints.collectives.registry import Collective
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8
from endpoints.core.schedule import Schedule
from endpoints.core.transfers import ScheduledTransfers


def point_to_point(name: str, kind: KindName, summary: str, transfers: Schedule) -> Collective:
    """The algorithm that carries out ``transfers``, by which everybody ends with the same bytes."""

    def make(services: Services, op: int, data: U8, buffer: U8) -> Operation:
        """A rank's own block is where its rank says; Broadcast's only block is rank 0's."""
        ranks, gathers = services.comm.size, KINDS[kind].gathers
        size = buffer.size // KINDS[kind].buffer_blocks(ranks)
        own = services.rank * size if gathers else 0
        return ScheduledTransfers(services, op, transfers(ranks, size), data, buffer, own)

    return Collective(name, kind, summary, make, transfers=transfers)
