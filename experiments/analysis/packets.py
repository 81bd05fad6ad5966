"""Captured packets as columns, whatever kind of file they come from, and what a reader has to say beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

Integers = npt.NDArray[Any]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

ETHERNET: Final = 1
"""LINKTYPE_ETHERNET."""
LARGEST: Final = 64 << 20
"""Bytes of the largest block or packet that is believed in; Wireshark itself takes blocks of up to 16 MiB."""
IN, OUT, UNKNOWN = 0, 1, -1
"""Directions: into the interface, out of it, not told."""


class DamagedCapture(Exception):
    """A file that is no capture, or stops being one: the message says at which byte and why."""


@dataclass(slots=True)
class Interface:
    """Where packets were captured. ``dropped`` is the capturing side's own count of packets that it missed.

    ``power`` is the base of the resolution of times and ``digits`` its negative exponent; ``offset_s`` is to be added
    to every time.
    """

    name: str | None
    link_type: int
    power: int = 10
    digits: int = 6
    offset_s: int = 0
    dropped: int = 0

    def nanoseconds(self, units: npt.NDArray[np.uint64]) -> I64:
        """Times since 1970 in the interface's units, shape (n,), as nanoseconds (pcapng, 4.2: if_tsresol)."""
        if self.power == 10:
            steps = 10 ** abs(9 - self.digits)
            times = units * np.uint64(steps) if self.digits <= 9 else units // np.uint64(steps)
        else:
            bits = min(self.digits, 33)  # finer than a nanosecond by far; and no product below exceeds 64 bits
            units = units >> np.uint64(self.digits - bits)
            whole, part = units >> np.uint64(bits), units & np.uint64((1 << bits) - 1)
            times = whole * np.uint64(10**9) + (part * np.uint64(10**9) >> np.uint64(bits))
        return times.astype(np.int64) + self.offset_s * 10**9


@dataclass(frozen=True, slots=True)
class Packets:
    """Columns of shape (n,) over consecutive packets; ``data`` is void once the next ones are asked for.

    ``start`` is where each begins in ``data``, of which ``captured`` bytes are there of ``length`` on the wire;
    ``interface`` counts the reader's interfaces; ``direction`` is one of IN, OUT, UNKNOWN.
    """

    data: bytearray
    start: I64
    captured: I64
    length: I64
    time_ns: I64
    interface: I64
    direction: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.start)

    def heads(self, width: int) -> U8:
        """The first ``width`` bytes of each packet, shape (n, width); those beyond ``captured`` mean nothing."""
        return rows(self.data, width)[self.start]


class Reader(Protocol):
    """Reads one file. What is wrong without being fatal is in ``warnings`` once all has been read."""

    interfaces: list[Interface]
    warnings: list[str]
    cut: bool
    """Whether the file ends in the middle of a packet."""

    def __iter__(self) -> Iterator[Packets]: ...


@dataclass(slots=True)
class Remarks:
    """What every reader keeps."""

    interfaces: list[Interface] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cut: bool = False

    def note_end(self, offset: int, left: int) -> None:
        """The file ended at ``offset``, with ``left`` bytes that are no whole packet."""
        if left:
            self.cut = True
            self.warnings.append(
                f"ends in the middle of a packet: the last {left} bytes, from byte {offset} on, are left out"
            )


def rows(data: bytearray, width: int) -> U8:
    """Every ``width`` consecutive bytes of ``data`` as a row, without a copy: row i begins at byte i."""
    flat = np.frombuffer(data, np.uint8)
    return as_strided(flat, (len(flat) - width + 1, width), (1, 1), writeable=False)
