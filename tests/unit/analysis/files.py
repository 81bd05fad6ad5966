"""Capture files as others write them, block by block, in either byte order."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Writer:
    """pcapng blocks in one byte order (``<`` or ``>``)."""

    order: str = "<"

    def block(self, kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return self.pack("II", kind, 12 + len(body)) + body + self.pack("I", 12 + len(body))

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(self.order + form, *values)

    def option(self, code: int, value: bytes) -> bytes:
        return self.pack("HH", code, len(value)) + value + bytes(-len(value) % 4)

    def section(self) -> bytes:
        return self.block(0x0A0D0D0A, self.pack("IHHq", 0x1A2B3C4D, 1, 0, -1) + self.option(1, b"a comment"))

    def interface(self, *options: bytes, link_type: int = 1) -> bytes:
        return self.block(1, self.pack("HHI", link_type, 0, 0) + b"".join(options))

    def packet(self, interface: int, units: int, frame: bytes, *options: bytes, length: int | None = None) -> bytes:
        head = self.pack("IIIII", interface, units >> 32, units & 0xFFFFFFFF, len(frame), length or len(frame))
        return self.block(6, head + frame + bytes(-len(frame) % 4) + b"".join(options))

    def pcap(self, magic: int, packets: list[tuple[int, int, bytes]], link_type: int = 1) -> bytes:
        """A classic file of packets as (seconds, fraction, frame)."""
        head = self.pack("IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)
        return head + b"".join(
            self.pack("IIII", second, part, len(frame), len(frame) + 5) + frame for second, part, frame in packets
        )
