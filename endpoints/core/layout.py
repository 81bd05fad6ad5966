"""Where things are in a RoCEv2 frame: offsets and sizes, the one table for whoever looks at bytes.

Ethernet / IPv4 without options / UDP / BTH / extended headers / payload / pad / ICRC (IBTA vol. 1, chapter 9, and its
RoCEv2 annex A17). Offsets are in bytes from the first byte of the Ethernet header.
"""

from __future__ import annotations

from typing import Final

from endpoints.core.packets import Opcode, packets_of, write_opcode

ETH_LEN: Final = 14
IP_LEN: Final = 20
UDP_LEN: Final = 8
BTH_LEN: Final = 12
ICRC_LEN: Final = 4

ETHERTYPE: Final = 12
IP: Final = 14
IP_TOS: Final = 15
IP_TOTAL_LENGTH: Final = 16
IP_FRAGMENT: Final = 20
IP_TTL: Final = 22
IP_PROTOCOL: Final = 23
IP_CHECKSUM: Final = 24
IP_SRC: Final = 26
IP_DST: Final = 30
UDP_SPORT: Final = 34
UDP_DPORT: Final = 36
UDP_LENGTH: Final = 38
UDP_CHECKSUM: Final = 40
BTH: Final = 42
"""The opcode is BTH's first byte."""
BTH_FLAGS: Final = 43
"""Solicited event 1 bit, migration request 1, pad count 2, transport header version 4."""
BTH_RESV8A: Final = 46
"""FECN, BECN and 6 reserved bits: the one byte of BTH that a switch may change, so the ICRC leaves it out."""
BTH_QPN: Final = 47
BTH_ACKREQ: Final = 50
BTH_PSN: Final = 51
EXTENDED: Final = 54
"""First extended header, or the payload where the opcode has none."""
UD_QKEY: Final = 54
UD_SRC_QPN: Final = 59
UD_IMM: Final = 62
UD_PAYLOAD: Final = 66

ROCE_PORT: Final = 4791
"""UDP destination port (annex A17)."""

QKEY: Final = 0x01234567
"""Q_Key of the multicast datagrams: the one that RDMA connection managers use for their UD queue pairs."""

DETH_LEN: Final = 8
RETH_LEN: Final = 16
AETH_LEN: Final = 4
IMM_LEN: Final = 4

RETH_OPCODES: Final = frozenset(
    {Opcode.RC_WRITE_FIRST, Opcode.RC_WRITE_ONLY, Opcode.RC_WRITE_ONLY_IMM, Opcode.RC_READ_REQUEST}
)
AETH_OPCODES: Final = frozenset(
    {
        Opcode.RC_READ_RESPONSE_FIRST,
        Opcode.RC_READ_RESPONSE_LAST,
        Opcode.RC_READ_RESPONSE_ONLY,
        Opcode.RC_ACKNOWLEDGE,
    }
)
IMM_OPCODES: Final = frozenset(
    {
        Opcode.RC_SEND_LAST_IMM,
        Opcode.RC_SEND_ONLY_IMM,
        Opcode.RC_WRITE_LAST_IMM,
        Opcode.RC_WRITE_ONLY_IMM,
        Opcode.UD_SEND_ONLY_IMM,
    }
)
NO_PAYLOAD_OPCODES: Final = frozenset({Opcode.RC_READ_REQUEST, Opcode.RC_ACKNOWLEDGE})
"""Opcodes whose packets end with their headers (IBTA vol. 1, table 38)."""


def header_length(opcode: Opcode) -> int:
    """Bytes before the payload: Ethernet to the last extended header (IBTA vol. 1, table 38)."""
    return (
        EXTENDED
        + (DETH_LEN if opcode is Opcode.UD_SEND_ONLY_IMM else 0)
        + (RETH_LEN if opcode in RETH_OPCODES else 0)
        + (AETH_LEN if opcode in AETH_OPCODES else 0)
        + (IMM_LEN if opcode in IMM_OPCODES else 0)
    )


def write_wire_bytes(size: int, mtu: int) -> int:
    """Bytes on a link of one RDMA WRITE with immediate of ``size`` bytes: payload, pad, and headers of every packet."""
    count = packets_of(size, mtu)
    headers = sum(header_length(write_opcode(index, count)) for index in {0, count - 1})
    middles = max(0, count - 2) * header_length(Opcode.RC_WRITE_MIDDLE)
    return size + -size % 4 + headers + middles + count * ICRC_LEN


MAX_HEADER_LENGTH: Final = max(map(header_length, Opcode))


def max_frame_length(mtu: int) -> int:
    """Bytes of the longest frame that carries ``mtu`` bytes of payload."""
    return MAX_HEADER_LENGTH + mtu + ICRC_LEN
