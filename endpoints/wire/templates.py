"""Frames that Scapy builds once, from which the codec makes all others by patching bytes.

One frame for each opcode, with addresses, queue pair, PSN and payload left empty. Building one takes Scapy about a
millisecond, so that one for each opcode and each pair of 128 hosts would take minutes; the addresses are as easily
patched as the PSN. The parent builds them before it forks; its children are handed bytes and need no Scapy.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from endpoints.core.communicator import UD_QPN
from endpoints.core.layout import AETH_OPCODES, IMM_OPCODES, QKEY, RETH_OPCODES, ROCE_PORT
from endpoints.core.packets import Opcode
from endpoints.wire.layers import AETH, BTH, DETH, IP, RETH, UDP, Ether, ImmDt

Templates = Mapping[Opcode, bytes]
"""For each opcode a whole frame, Ethernet header to ICRC, with an empty payload and zeros for what differs by frame."""

_NO_MAC = "00:00:00:00:00:00"
_NO_IP = "0.0.0.0"  # noqa: S104 - an address field yet to be filled, not an address to listen on


def build_templates() -> Templates:
    """Build the frame of every opcode in use."""
    return MappingProxyType({opcode: _build(opcode) for opcode in Opcode})


def _build(opcode: Opcode) -> bytes:
    # DF and identification 0: RoCE is never fragmented (RFC 6864, 4.1: an atomic datagram's identification is free).
    # UDP checksum 0: the ICRC covers the same bytes (RFC 768 allows none over IPv4).
    frame = (
        Ether(dst=_NO_MAC, src=_NO_MAC)
        / IP(src=_NO_IP, dst=_NO_IP, flags="DF", id=0, ttl=64)
        / UDP(sport=0, dport=ROCE_PORT, chksum=0)
        / BTH(opcode=int(opcode))
    )
    if opcode is Opcode.UD_SEND_ONLY_IMM:
        frame /= DETH(qkey=QKEY, srcqp=UD_QPN)
    if opcode in RETH_OPCODES:
        frame /= RETH()
    if opcode in AETH_OPCODES:
        frame /= AETH()
    if opcode in IMM_OPCODES:
        frame /= ImmDt()
    return bytes(frame)
