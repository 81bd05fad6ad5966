"""What an endpoint tells its owner, as frozen values, pulled with ``Endpoint.next_event``."""

from __future__ import annotations

from dataclasses import dataclass

from endpoints.core.states import Phase


@dataclass(frozen=True, slots=True)
class PhaseEntered:
    """Operation ``op`` entered ``phase`` at ``now`` (ns)."""

    op: int
    phase: Phase
    now: int


@dataclass(frozen=True, slots=True)
class Completed:
    """Operation ``op`` is complete: every byte is in place and the buffers may be reused."""

    op: int
    now: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Operation ``op`` failed. ``suspect`` is the rank that seems to be at fault, None if nobody can be named."""

    op: int
    now: int
    reason: str
    suspect: int | None


Event = PhaseEntered | Completed | Failed
