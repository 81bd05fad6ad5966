"""RoCEv2 frames as bytes, as far as a filter looks at them."""

from __future__ import annotations

import struct

UD, WRITE_MIDDLE = 0x65, 0x07


def roce_frame(
    psn: int, *, opcode: int = UD, source: int = 1, qpn: int = 0x11, source_qpn: int = 0, imm: int = 0, size: int = 100
) -> bytes:
    """Ethernet, IPv4, UDP, BTH, the words behind it; ``size`` bytes in all."""
    ip = struct.pack(">BBHHHBBHBBBBI", 0x45, 0, size - 14, 0, 0, 64, 17, 0, 10, 0, 0, source, 0xEF000001)
    udp = struct.pack(">HHHH", 49152, 4791, size - 34, 0)
    bth = struct.pack(">BBHII", opcode, 0x40, 0xFFFF, qpn, psn)
    rest = struct.pack(">III", 0x01234567, source_qpn, imm)
    return (b"\x02" * 12 + b"\x08\x00" + ip + udp + bth + rest).ljust(size, b"\0")
