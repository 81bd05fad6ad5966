"""Control messages: RC SENDs whose immediate says what and for which operation, with a body of 32-bit words.

The artifact's control word is a 32-bit immediate, too (PAPER 1.6: 3 bits type, 29 bits rank); ours carries the
operation, so that nothing that was meant for one operation can act on the next.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

OP_BITS = 28

Ranges = Sequence[tuple[int, int]]


class Kind(IntEnum):
    """Type of a control message, 4 bits; its body in brackets."""

    BARRIER = 1
    """A step of the barrier [``barrier.Step``]."""
    TOKEN = 2
    """My multicast is sent: you are the next root of the chain []."""
    FETCH = 3
    """I lack these chunks [(first, stop) ...]."""
    READY = 4
    """I have these of them: read them [(first, stop) ...]."""
    GONE = 5
    """I have finished that operation and cannot supply it any more []."""
    FIN = 6
    """I have everything; I need nothing more of you []."""
    ABORT = 7
    """I gave up [suspect rank, or 0xFFFFFFFF]."""

    PROBE = 8
    """Are you there? The acknowledgement says so []."""


NOBODY = 0xFFFFFFFF
_KINDS = frozenset(int(kind) for kind in Kind)


@dataclass(frozen=True, slots=True)
class Message:
    """One control message, as sent and as received. ``op`` is unwrapped by the receiver."""

    kind: Kind
    op: int
    body: tuple[int, ...] = ()

    def encode(self) -> tuple[int, bytes]:
        """(immediate, payload)."""
        imm = self.kind << OP_BITS | (self.op & ((1 << OP_BITS) - 1))
        return imm, struct.pack(f">{len(self.body)}I", *self.body)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The body as (first, stop) pairs."""
        return list(zip(self.body[0::2], self.body[1::2], strict=False))


def decode(imm: int, payload: bytes) -> Message | None:
    """The message of an immediate and a payload; None where they are no message of ours."""
    if imm >> OP_BITS not in _KINDS or len(payload) % 4:
        return None
    return Message(Kind(imm >> OP_BITS), imm & ((1 << OP_BITS) - 1), struct.unpack(f">{len(payload) // 4}I", payload))


def ranges_messages(kind: Kind, op: int, ranges: Ranges, mtu: int) -> Iterator[Message]:
    """As many messages as the ranges need at one MTU each."""
    per_message = mtu // 8
    for start in range(0, len(ranges), per_message):
        part = ranges[start : start + per_message]
        yield Message(kind, op, tuple(word for pair in part for word in pair))
