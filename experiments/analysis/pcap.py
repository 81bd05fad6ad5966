"""Classic pcap files (draft-ietf-opsawg-pcap), which tcpdump writes, to columns: one interface, no directions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from experiments.analysis.packets import (
    I64,
    LARGEST,
    UNKNOWN,
    DamagedCapture,
    Interface,
    Packets,
    Remarks,
    rows,
)
from experiments.analysis.window import Window

MAGICS: Final = {0xA1B2C3D4: 6, 0xA1B23C4D: 9}
"""Digits of the fraction of a second, by magic number."""
_FILE, _RECORD = 24, 16


def order_of(head: bytes) -> str | None:
    """The byte order of a pcap file that begins with these 4 bytes; None if it is none."""
    return next((order for order in "<>" if struct.unpack(f"{order}I", head)[0] in MAGICS), None)


class PcapReader(Remarks):
    """Iterates over the packets of a pcap file in columns. :class:`DamagedCapture` where it makes no sense."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self._window = window

    def __iter__(self) -> Iterator[Packets]:
        window = self._window
        if not window.advance(0, _FILE):
            raise DamagedCapture("ends within the header of the file")
        order = order_of(bytes(window.data[:4]))
        assert order is not None  # it was chosen for its magic number
        magic, link_type = struct.unpack_from(f"{order}I16xI", window.data)
        digits = MAGICS[magic]
        self.interfaces.append(Interface(None, link_type & 0x0FFFFFFF, 10, digits))
        at, need = _FILE, _RECORD
        while window.advance(at, need):
            starts, at, need = self._walk(order)
            if starts:
                yield self._columns(np.array(starts, np.int64), order, 10**digits)
        self.note_end(window.offset, window.end)

    def _walk(self, order: str) -> tuple[list[int], int, int]:
        """The whole packets in the window, where they end, and how many bytes the next one needs."""
        data, end, at = self._window.data, self._window.end, 0
        size_at = struct.Struct(f"{order}8xI").unpack_from
        starts: list[int] = []
        while end - at >= _RECORD:
            size = _RECORD + size_at(data, at)[0]
            if size > LARGEST:
                raise DamagedCapture(f"damaged at byte {self._window.offset + at}: a packet of {size} bytes")
            if size > end - at:
                return starts, at, size
            starts.append(at)
            at += size
        return starts, at, _RECORD

    def _columns(self, at: I64, order: str, second: int) -> Packets:
        head = np.ascontiguousarray(rows(self._window.data, _RECORD)[at]).view(f"{order}u4").astype(np.int64)
        fraction = head[:, 1] * (10**9 // second)
        return Packets(
            data=self._window.data,
            start=at + _RECORD,
            captured=head[:, 2],
            length=head[:, 3],
            time_ns=head[:, 0] * 10**9 + fraction,
            interface=np.zeros(len(at), np.int64),
            direction=np.full(len(at), UNKNOWN, np.int8),
        )
