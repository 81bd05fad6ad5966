"""One frame to one packet value, check by check: the reading of whatever is not a full multicast chunk."""

from __future__ import annotations

import struct
from typing import NamedTuple

from endpoints.core import layout
from endpoints.core.communicator import MULTICAST_QPN, Communicator
from endpoints.core.packets import U8, Aeth, Opcode, RcPacket, Reth
from endpoints.wire.icrc import COVERED, HEADER_MASK, RESIDUE, crc32

_OPCODES = {int(opcode): (opcode, layout.header_length(opcode)) for opcode in Opcode}
_SMALLEST = layout.EXTENDED - layout.ETH_LEN + layout.ICRC_LEN
"""Bytes of the smallest RoCE datagram, IP header included."""
_ETHERNET_MINIMUM = 60
"""Shorter frames may come padded to this length (IEEE 802.3, 4.2.3.3, without its FCS)."""
_IPV4 = 0x0800
_VERSION_4_IHL_5 = 0x45
_UDP = 17
_DEFAULT_PKEY = 0xFFFF


class Chunk(NamedTuple):
    """A multicast chunk's header: sending rank, PSN, immediate, payload bytes."""

    src: int
    psn: int
    imm: int
    length: int


class PacketReader:
    """Reads single frames that reach one rank."""

    def __init__(self, comm: Communicator, rank: int) -> None:
        self._mtu = comm.mtu
        self._own_ip = comm.peers[rank].ip
        self._rank_of = {peer.ip: peer.rank for peer in comm.peers}
        self._rc_qpn, self._bulk_qpn = comm.rc_qpn, comm.bulk_qpn
        self._groups = frozenset(group.ip for group in comm.groups)

    def read(self, frame: U8, length: int) -> Chunk | RcPacket | str:
        """The packet in the first ``length`` bytes of ``frame``, or the name of the first check that it fails.

        The bytes that the ICRC does not cover are overwritten. A reliable packet's payload is a view into ``frame``.
        """
        if length > len(frame):
            return "truncated"
        head = frame[: layout.MAX_HEADER_LENGTH].tobytes()
        refusal = _check_envelope(head, length)
        if refusal:
            return refusal
        (total,) = struct.unpack_from("!H", head, layout.IP_TOTAL_LENGTH)
        end = layout.ETH_LEN + total
        frame[: layout.EXTENDED] |= HEADER_MASK
        if crc32(frame[COVERED:end]) != RESIDUE:
            return "bad_icrc"
        return self._read_transport(frame, head, end - layout.ICRC_LEN)

    def stranger(self, src: int, dst: int, *, multicast: bool) -> str | None:
        """Why a packet between these IPv4 addresses is not for this rank, or None."""
        if src == self._own_ip:
            return "own"
        if src not in self._rank_of:
            return "unknown_peer"
        if dst not in self._groups if multicast else dst != self._own_ip:
            return "wrong_destination"
        return None

    def _read_transport(self, frame: U8, head: bytes, end: int) -> Chunk | RcPacket | str:
        """The packet in a frame whose ICRC is right; ``end`` is where its pad ends."""
        code, flags, pkey = struct.unpack_from("!BBH", head, layout.BTH)
        if flags & 0xF:
            return "not_roce"  # transport header version: 0 is the only one there is (IBTA vol. 1, 9.2.3)
        if code not in _OPCODES:
            return "unknown_opcode"
        opcode, start = _OPCODES[code]
        length = end - start - (flags >> 4 & 3)
        if not 0 <= length <= (0 if opcode in layout.NO_PAYLOAD_OPCODES else self._mtu):
            return "bad_length"
        src, dst = struct.unpack_from("!II", head, layout.IP_SRC)
        datagram = opcode is Opcode.UD_SEND_ONLY_IMM
        refusal = self.stranger(src, dst, multicast=datagram)
        if refusal:
            return refusal
        rank = self._rank_of[src]
        qpn = int.from_bytes(head[layout.BTH_QPN : layout.BTH_QPN + 3], "big")
        known = (MULTICAST_QPN,) if datagram else (self._rc_qpn + rank, self._bulk_qpn + rank)
        if pkey != _DEFAULT_PKEY or qpn not in known:
            return "unknown_qp"
        if datagram:
            return _read_chunk(head, rank, length)
        packet = _read_rc(opcode, head, rank, frame[start : start + length])
        packet.bulk = qpn >= self._bulk_qpn
        return packet


def _check_envelope(head: bytes, length: int) -> str | None:
    """What is wrong with the Ethernet, IP and UDP headers, if anything."""
    if length < layout.ETH_LEN:
        return "truncated"
    (ethertype,) = struct.unpack_from("!H", head, layout.ETHERTYPE)
    if ethertype != _IPV4:
        return "not_roce"
    if length < layout.BTH:
        return "truncated"
    version, _, total, _, fragment, _, protocol = struct.unpack_from("!BBHHHBB", head, layout.IP)
    if version != _VERSION_4_IHL_5 or protocol != _UDP or fragment & 0x3FFF:  # more fragments, or not the first one
        return "not_roce"
    port, udp_length = struct.unpack_from("!HH", head, layout.UDP_DPORT)
    if port != layout.ROCE_PORT:
        return "not_roce"
    end = layout.ETH_LEN + total
    if length < end:
        return "truncated"
    if total < _SMALLEST or udp_length != total - layout.IP_LEN or (length > end and length != _ETHERNET_MINIMUM):
        return "bad_length"
    return None


def _read_chunk(head: bytes, rank: int, length: int) -> Chunk | str:
    _, psn, qkey = struct.unpack_from("!B3sI", head, layout.BTH_ACKREQ)
    if qkey != layout.QKEY:
        return "unknown_qp"
    (imm,) = struct.unpack_from("!I", head, layout.UD_IMM)
    return Chunk(rank, int.from_bytes(psn, "big"), imm, length)


def _read_rc(opcode: Opcode, head: bytes, rank: int, payload: U8) -> RcPacket:
    (word,) = struct.unpack_from("!I", head, layout.BTH_ACKREQ)
    packet = RcPacket(opcode, rank, word & 0xFFFFFF, ack_request=bool(word >> 31), payload=payload)
    at = layout.EXTENDED
    if opcode in layout.RETH_OPCODES:
        packet.reth = Reth(*struct.unpack_from("!QII", head, at))
        at += layout.RETH_LEN
    if opcode in layout.AETH_OPCODES:
        (aeth,) = struct.unpack_from("!I", head, at)
        packet.aeth = Aeth(aeth >> 24, aeth & 0xFFFFFF)
        at += layout.AETH_LEN
    if opcode in layout.IMM_OPCODES:
        (packet.imm,) = struct.unpack_from("!I", head, at)
    return packet
