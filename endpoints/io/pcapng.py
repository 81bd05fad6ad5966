"""pcapng blocks (draft-ietf-opsawg-pcapng): section, interface, packets with direction, statistics at the end."""

from __future__ import annotations

import struct
from typing import Final

_SHB, _IDB, _ISB, _EPB = 0x0A0D0D0A, 1, 5, 6
_ETHERNET: Final = 1
_NANOSECONDS: Final = 9
INBOUND: Final = 1
OUTBOUND: Final = 2


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _options(*options: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options)
    return body + bytes(4) if body else b""


def _block(kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def section(application: str) -> bytes:
    """The section header (4.1), little endian, of unknown length."""
    return _block(_SHB, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _options((4, application.encode())))


def interface(name: str, snaplen: int) -> bytes:
    """The description of an Ethernet interface (4.2) whose times are in nanoseconds."""
    options = _options((2, name.encode()), (9, bytes([_NANOSECONDS])))
    return _block(_IDB, struct.pack("<HHI", _ETHERNET, 0, snaplen) + options)


def packet(time_ns: int, frame: bytes, length: int, direction: int) -> bytes:
    """An enhanced packet (4.3): ``frame`` as captured, ``length`` as it was; inbound 1, outbound 2."""
    head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), length)
    return _block(_EPB, head + _padded(frame) + _options((2, struct.pack("<I", direction))))


def statistics(time_ns: int, received: int, dropped: int) -> bytes:
    """Interface statistics (4.6): frames that the kernel handed over, and that it had no room for."""
    options = _options((4, struct.pack("<Q", received)), (5, struct.pack("<Q", dropped)))
    return _block(_ISB, struct.pack("<III", 0, time_ns >> 32, time_ns & 0xFFFFFFFF) + options)
