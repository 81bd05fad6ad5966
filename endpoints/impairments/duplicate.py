"""Duplication."""

from __future__ import annotations

from endpoints.impairments.registry import Blow, Impairment


def _strike(blow: Blow) -> None:
    blow.fates.copies[blow.hit] += 1


IMPAIRMENT = Impairment("duplicate", "the packet comes twice, the second right behind the first", _strike)
