"""The ICRC against an implementation written from the specification, and against frames of real adapters."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core import layout
from endpoints.core.packets import Opcode, RcPacket, UdBurst
from endpoints.wire.icrc import COVERED, HEADER_MASK, RESIDUE, crc32

# A congestion notification packet captured on a ConnectX-4 Lx, and a UC packet; both are vectors in Scapy's own tests.
# The second carried IP TOS 1, so that a wrong mask of it would show.
CONNECTX_CNP = bytes.fromhex(
    "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a00"
    "1201000012b7002800008100ffff40000118000000000000000000000000000000000000000082fd002a"
)
MELLANOX_UC = bytes.fromhex(
    "248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710"
    "4630818be28935d90e9a95505401be885e500000"
    "78f353f3"
)


def icrc_by_the_book(frame: bytes) -> bytes:
    """Annex A17: the CRC of 64 ones and the datagram whose changeable fields are ones; transmitted low byte first."""
    data = bytearray(b"\xff" * 8 + frame[14:-4])
    for offset in (1, 8, 10, 11, 26, 27, 32):  # TOS, TTL, IP checksum, UDP checksum, FECN/BECN/reserved
        data[8 + offset] = 0xFF
    register = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            carry = (register ^ byte >> bit) & 1
            register = register >> 1 ^ (0xEDB88320 if carry else 0)
    return (register ^ 0xFFFFFFFF).to_bytes(4, "little")


def ours(frame: bytes) -> bytes:
    data = np.frombuffer(bytearray(frame), np.uint8)
    data[: layout.EXTENDED] |= HEADER_MASK
    return crc32(data[COVERED:-4]).to_bytes(4, "little")


@pytest.mark.parametrize("frame", [CONNECTX_CNP, MELLANOX_UC], ids=["cnp", "uc"])
def test_frames_of_real_adapters(frame):
    assert icrc_by_the_book(frame) == frame[-4:]
    assert ours(frame) == frame[-4:]


def test_sent_frames_agree_with_the_specification(sender):
    payload = np.arange(1021, dtype=np.uint32).astype(np.uint8)
    burst = UdBurst(0, np.array([1, 2], np.uint32), np.array([3, 4], np.uint32), [payload, payload[:5]])
    frames = [sender.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 3, 9, payload=b"abcde")), *sender.encode_burst(burst)]
    for frame in map(bytes, frames):
        assert icrc_by_the_book(frame) == frame[-4:]


def test_residue_is_what_a_right_frame_gives():
    data = np.frombuffer(bytearray(CONNECTX_CNP), np.uint8)
    data[: layout.EXTENDED] |= HEADER_MASK
    assert crc32(data[COVERED:]) == RESIDUE
    data[-5] ^= 1
    assert crc32(data[COVERED:]) != RESIDUE
