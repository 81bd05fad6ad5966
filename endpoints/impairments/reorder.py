"""Reordering: a packet is overtaken by those behind it."""

from __future__ import annotations

from endpoints.impairments.delay import DEFAULT_NS
from endpoints.impairments.registry import Blow, Impairment


def _strike(blow: Blow) -> None:
    blow.fates.hold_ns[blow.hit] += blow.spec.time_ns or DEFAULT_NS
    if blow.spec.packets is not None:
        blow.fates.hold_packets[blow.hit] = blow.spec.packets


IMPAIRMENT = Impairment(
    "reorder",
    "the packet waits until a time has passed, or so many packets have overtaken it",
    _strike,
    DEFAULT_NS,
    counts_packets=True,
)
