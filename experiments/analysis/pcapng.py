"""pcapng files (draft-ietf-opsawg-pcapng) to columns: any writer's, of either byte order, of any size.

One step of Python finds each block, since a block's length is all that says where the next begins; everything in the
blocks is read as columns. Enhanced packets count; simple packets have no time and are left out with a warning; blocks
of other kinds (names, secrets, comments, whatever is to come) are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from endpoints.io.pcapng import INBOUND, OUTBOUND
from experiments.analysis.packets import (
    I64,
    IN,
    LARGEST,
    OUT,
    UNKNOWN,
    DamagedCapture,
    Interface,
    Packets,
    Remarks,
)
from experiments.analysis.window import Window

SECTION: Final = 0x0A0D0D0A
"""The same in both byte orders; it begins every file."""
_INTERFACE, _SIMPLE, _STATISTICS, _ENHANCED = 1, 3, 5, 6
_MAGIC: Final = 0x1A2B3C4D
_SMALLEST: Final = {SECTION: 28, _INTERFACE: 20, _STATISTICS: 24, _ENHANCED: 32}
"""Bytes of the smallest block of each kind that is read."""
_NAME, _TSRESOL, _TSOFFSET, _IFDROP, _FLAGS = 2, 9, 14, 5, 2
_DIRECTION = np.full(4, UNKNOWN, np.int8)
_DIRECTION[INBOUND], _DIRECTION[OUTBOUND] = IN, OUT

Words = npt.NDArray[np.uint32]


class PcapngReader(Remarks):
    """Iterates over the packets of a pcapng file in columns. :class:`DamagedCapture` where it makes no sense."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self._window = window
        self._order = "<"
        self._first_interface = 0
        """The section's interfaces count from here."""
        self._simple = 0

    def __iter__(self) -> Iterator[Packets]:
        window, at, need = self._window, 0, 12
        while window.advance(at, need):
            at = 0
            while True:
                starts, at, need = self._walk(at)
                if starts:
                    yield self._columns(np.array(starts, np.int64))
                if need:
                    break
                at += self._begin_section(at)
        self.note_end(window.offset, window.end)
        if self._simple:
            self.warnings.append(f"{self._simple} simple packet blocks are left out: they have no time")

    def _walk(self, at: int) -> tuple[list[int], int, int]:
        """The enhanced packets from ``at`` on, where they end, and how many bytes are needed there.

        It ends where bytes are missing, or with 0 of them at a whole section header.
        """
        data, end = self._window.data, self._window.end
        head = struct.Struct(self._order + "II").unpack_from
        starts: list[int] = []
        while True:
            if end - at < 12:
                return starts, at, 12
            kind, length = head(data, at)
            if kind == SECTION:
                length = self._section_header(at)[1] if end - at >= 28 else 28
                return starts, at, length if length > end - at else 0
            if length < _SMALLEST.get(kind, 12) or length % 4 or length > LARGEST:
                raise self._damaged(at, f"a block of kind {kind} cannot have {length} bytes")
            if length > end - at:
                return starts, at, length
            if kind == _ENHANCED:
                starts.append(at)
            else:
                self._read_other(kind, at, length)
            at += length

    def _damaged(self, at: int, why: str) -> DamagedCapture:
        return DamagedCapture(f"damaged at byte {self._window.offset + at}: {why}")

    # -- blocks of which there are few ----------------------------------------------------------------------------

    def _section_header(self, at: int) -> tuple[str, int]:
        """The byte order that a section header (4.1) declares for all that follows, and its length in bytes."""
        for order in "<>":
            length, magic = struct.unpack_from(f"{order}II", self._window.data, at + 4)
            if magic == _MAGIC:
                if length < _SMALLEST[SECTION] or length % 4 or length > LARGEST:
                    raise self._damaged(at, f"a section header cannot have {length} bytes")
                return order, int(length)
        raise self._damaged(at, "a section header without its byte-order magic")

    def _begin_section(self, at: int) -> int:
        self._first_interface = len(self.interfaces)
        self._order, length = self._section_header(at)
        return length

    def _read_other(self, kind: int, at: int, length: int) -> None:
        data, order = self._window.data, self._order
        if kind == _SIMPLE:
            self._simple += 1
        elif kind == _INTERFACE:
            (link_type,) = struct.unpack_from(f"{order}H", data, at + 8)
            self.interfaces.append(self._interface(link_type, self._options(at + 16, at + length - 4)))
        elif kind == _STATISTICS:
            (number,) = struct.unpack_from(f"{order}I", data, at + 8)
            dropped = self._options(at + 20, at + length - 4).get(_IFDROP, b"")
            index = self._first_interface + number
            if len(dropped) == 8 and index < len(self.interfaces):
                (self.interfaces[index].dropped,) = struct.unpack(f"{order}Q", dropped)

    def _options(self, at: int, end: int) -> dict[int, bytes]:
        """Options by code, the first of each (3.5); what does not fit into the block ends them."""
        found: dict[int, bytes] = {}
        while at + 4 <= end:
            code, length = struct.unpack_from(f"{self._order}HH", self._window.data, at)
            if code == 0 or at + 4 + length > end:
                break
            found.setdefault(code, bytes(self._window.data[at + 4 : at + 4 + length]))
            at += 4 + length + -length % 4
        return found

    def _interface(self, link_type: int, options: dict[int, bytes]) -> Interface:
        resolution = options.get(_TSRESOL, b"\6")[:1] or b"\6"
        offset = options.get(_TSOFFSET, b"")
        return Interface(
            options[_NAME].rstrip(b"\0").decode(errors="replace") if _NAME in options else None,
            link_type,
            2 if resolution[0] & 0x80 else 10,
            resolution[0] & 0x7F,
            struct.unpack(f"{self._order}q", offset)[0] if len(offset) == 8 else 0,
        )

    # -- enhanced packets -----------------------------------------------------------------------------------------

    def _columns(self, at: I64) -> Packets:
        """The enhanced packets (4.3) that begin at the bytes ``at``, all multiples of 4."""
        words = np.frombuffer(self._window.data, f"{self._order}u4", len(self._window.data) // 4)
        word = at // 4
        size = words[word + 1].astype(np.int64)
        captured = words[word + 5].astype(np.int64)
        wrong = (words[word + size // 4 - 1] != size) | (captured > size - 32)
        if wrong.any():
            raise self._damaged(int(at[wrong][0]), "the lengths of a packet contradict each other")
        interface = words[word + 2].astype(np.int64) + self._first_interface
        if (interface >= len(self.interfaces)).any():
            raise self._damaged(int(at[interface >= len(self.interfaces)][0]), "a packet of an unknown interface")
        units = words[word + 3].astype(np.uint64) << np.uint64(32) | words[word + 4]
        return Packets(
            data=self._window.data,
            start=at + 28,
            captured=captured,
            length=words[word + 6].astype(np.int64),
            time_ns=self._times(interface, units),
            interface=interface,
            direction=_DIRECTION[self._flags(words, word + 7 + (captured + 3) // 4, word + size // 4 - 1) & 3],
        )

    def _times(self, interface: I64, units: npt.NDArray[np.uint64]) -> I64:
        times = np.empty(len(units), np.int64)
        for index in np.unique(interface).tolist():
            its = interface == index
            times[its] = self.interfaces[index].nanoseconds(units[its])
        return times

    def _flags(self, words: Words, option: I64, end: I64) -> Words:
        """The flags of each packet, 0 where it has none; its options begin at the word ``option``."""
        flags = np.zeros(len(option), np.uint32)
        left = np.flatnonzero(option < end)
        option = option.copy()
        little = self._order == "<"
        while len(left):
            head = words[option[left]]
            code, length = (head & 0xFFFF, head >> 16) if little else (head >> 16, head & 0xFFFF)
            mine = (code == _FLAGS) & (length == 4) & (option[left] + 1 < end[left])
            flags[left[mine]] = words[option[left[mine]] + 1]
            option[left] += 1 + (length.astype(np.int64) + 3) // 4
            left = left[~mine & (code != 0) & (option[left] < end[left])]
        return flags
