"""The invariant CRC: which bytes of a frame it covers, and the one call that computes it (IBTA vol. 1, annex A17).

It is Ethernet's CRC-32 over 8 bytes of 0xff (in place of InfiniBand's link header), the IP, UDP and transport headers
with every field that the network may change read as ones, and the payload with its pad. On the wire its least
significant byte is first. In a frame in memory the 8 bytes of ones fit over the last 8 of the Ethernet header's 14, so
that a masked frame is checked in one call over one range of memory, and the CRC of that range *with* its ICRC is a
constant when it is right.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from isal.isal_zlib import crc32

from endpoints.core import layout
from endpoints.core.packets import U8

__all__ = ["COVERED", "HEADER_MASK", "RESIDUE", "crc32"]

COVERED: Final = layout.ETH_LEN - 8
"""First byte of the range that goes into the CRC."""

RESIDUE: Final = 0x2144DF1C
"""CRC-32 of anything followed by its own CRC-32, least significant byte first."""


def _header_mask() -> U8:
    mask = np.zeros(layout.EXTENDED, np.uint8)
    mask[COVERED : layout.ETH_LEN] = 0xFF
    mask[[layout.IP_TOS, layout.IP_TTL, layout.BTH_RESV8A]] = 0xFF
    mask[layout.IP_CHECKSUM : layout.IP_CHECKSUM + 2] = 0xFF
    mask[layout.UDP_CHECKSUM : layout.UDP_CHECKSUM + 2] = 0xFF
    mask.flags.writeable = False
    return mask


HEADER_MASK: Final = _header_mask()
"""Ones where the first 54 bytes of a frame are read as ones: or-ed in, it makes a frame ready for the CRC."""
