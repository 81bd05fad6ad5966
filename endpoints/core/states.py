"""The phases of an operation, multicast or point-to-point: states, inputs and the one table of transitions.

A missing entry is an error. The sending side runs beside these phases (``sequencer``), for a root may still be sending
when its own receive buffer is already complete, and the quantities (bitmap, counters) are data, not states.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Where a rank stands in an operation."""

    IDLE = "idle"
    BARRIER = "barrier"
    MULTICAST = "multicast"
    TRANSFER = "transfer"
    RECOVERY = "recovery"
    HANDSHAKE = "handshake"
    DONE = "done"
    FAILED = "failed"


class Input(Enum):
    """What moves a rank on."""

    START = "start"
    EVERYONE_READY = "everyone ready"
    PEERS_READY = "everyone ready for point-to-point transfers"
    COMPLETE = "buffer complete"
    CUTOFF = "cutoff"
    RELEASED = "neighbour finished and own data sent"
    FAILURE = "failure"


FINAL = frozenset({Phase.DONE, Phase.FAILED})

RECEIVING = frozenset({Phase.MULTICAST, Phase.RECOVERY})
"""Those in which chunks of the multicast are missing."""

MOVING = RECEIVING | {Phase.TRANSFER}
"""Those in which bytes are on their way."""

TRANSITIONS: dict[Phase, dict[Input, Phase]] = {
    Phase.IDLE: {Input.START: Phase.BARRIER},
    Phase.BARRIER: {
        Input.EVERYONE_READY: Phase.MULTICAST,
        Input.PEERS_READY: Phase.TRANSFER,
        Input.FAILURE: Phase.FAILED,
    },
    Phase.TRANSFER: {Input.COMPLETE: Phase.HANDSHAKE, Input.FAILURE: Phase.FAILED},
    Phase.MULTICAST: {
        Input.COMPLETE: Phase.HANDSHAKE,
        Input.CUTOFF: Phase.RECOVERY,
        Input.FAILURE: Phase.FAILED,
    },
    Phase.RECOVERY: {Input.COMPLETE: Phase.HANDSHAKE, Input.FAILURE: Phase.FAILED},
    Phase.HANDSHAKE: {Input.RELEASED: Phase.DONE, Input.FAILURE: Phase.FAILED},
    Phase.DONE: {},
    Phase.FAILED: {},
}
