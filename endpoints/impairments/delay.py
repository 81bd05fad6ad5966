"""Delay."""

from __future__ import annotations

from endpoints.impairments.registry import Blow, Impairment

DEFAULT_NS = 5_000_000
"""As long as about fifteen packets of 4 KiB take at 100 Mbit/s: late, yet well before any timer gives it up."""


def _strike(blow: Blow) -> None:
    blow.fates.hold_ns[blow.hit] += blow.spec.time_ns or DEFAULT_NS


IMPAIRMENT = Impairment("delay", "the packet comes later by a time", _strike, DEFAULT_NS)
