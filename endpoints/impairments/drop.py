"""Loss."""

from __future__ import annotations

from endpoints.impairments.registry import Blow, Impairment


def _strike(blow: Blow) -> None:
    blow.fates.copies[blow.hit] = 0


IMPAIRMENT = Impairment("drop", "the packet is lost", _strike)
