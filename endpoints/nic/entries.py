"""What goes through the queues: work requests to the NIC, completions back. Fixed sizes, little-endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Self

from endpoints.collectives.elements import Element
from endpoints.nic.rows import Rows

DEPTH = 64
"""Work requests that may be outstanding; the completion queue is as deep, so it never overflows."""

ELEMENTS = tuple(Element)

_REASON_BYTES = 232
_NOBODY = -1


class Status(IntEnum):
    """How a work request ended, after the statuses of work completions (IBTA vol. 1, 11.6.2)."""

    SUCCESS = 0
    LOCAL_LENGTH_ERROR = 1
    """Buffers are not as long as the collective's result, or it does not fit into the NIC's memory."""
    LOCAL_OPERATION_ERROR = 2
    """There is no such algorithm."""
    LOCAL_PROTECTION_ERROR = 4
    """It names memory that is not registered."""
    FLUSHED_ERROR = 5
    """It was not begun, since one before it had failed, or was given up."""
    RETRY_EXCEEDED_ERROR = 12
    """The collective failed, or was given up: ``reason`` says why, ``suspect`` on whose account."""
    FATAL_ERROR = 20
    """The NIC is gone; what became of the work nobody knows."""


@dataclass(frozen=True, slots=True)
class Work:
    """A collective to run: ``algorithm`` is a number in the sorted list of all, ``element`` one in ``ELEMENTS``.

    It is prepared when its turn comes, and begins not before ``start_at`` (monotonic ns; 0: at once).
    """

    ENTRY: ClassVar = struct.Struct("<QII5Q5QQ")

    number: int
    algorithm: int
    data: Rows
    buffer: Rows
    start_at: int = 0
    element: int = 0

    def pack(self) -> bytes:
        """As bytes."""
        rows = (x for part in (self.data, self.buffer) for x in (part.key, part.offset, *_shape(part)))
        return self.ENTRY.pack(self.number, self.algorithm, self.element, *rows, self.start_at)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """From what :meth:`pack` gave; any bytes of the length are some work request, if not one that can be done."""
        number, algorithm, element, *rows, start_at = cls.ENTRY.unpack(packed)
        return cls(number, algorithm, Rows(*rows[:5]), Rows(*rows[5:]), start_at, element)


def _shape(rows: Rows) -> tuple[int, int, int]:
    return rows.length, rows.stride, rows.count


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of the work request ``number``. ``suspect`` is a rank."""

    ENTRY: ClassVar = struct.Struct(f"<QIi{_REASON_BYTES}s")

    number: int
    status: Status
    reason: str = ""
    suspect: int | None = None

    def pack(self) -> bytes:
        """As bytes; a reason that is too long loses its end."""
        suspect = _NOBODY if self.suspect is None else self.suspect
        return self.ENTRY.pack(self.number, self.status, suspect, self.reason.encode()[:_REASON_BYTES])

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """From what :meth:`pack` gave; a status that there is not is that of a NIC that has gone mad."""
        number, status, suspect, reason = cls.ENTRY.unpack(packed)
        text = reason.rstrip(b"\0").decode(errors="ignore")
        if status not in _KNOWN:
            status, text = Status.FATAL_ERROR, f"its NIC gave the status {status}"
        return cls(number, Status(status), text, None if suspect < 0 else suspect)


_KNOWN = frozenset(Status)
