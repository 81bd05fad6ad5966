"""Packet values to frames: copies of Scapy's templates with the fields that differ written over.

A frame's CRC is taken while the fields that it does not cover still hold ones, and these are written last: the payload
is copied once, into the frame that goes to the socket.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from endpoints.core import layout
from endpoints.core.communicator import MULTICAST_QPN, Communicator, GroupAddress, Peer
from endpoints.core.packets import U8, U32, Opcode, RcPacket, UdBurst, WriteBurst, packets_of, write_opcode
from endpoints.wire.icrc import COVERED, HEADER_MASK, crc32

_HEAD = layout.BTH_ACKREQ
"""Bytes up to the acknowledge bit and the PSN: the same for all frames of one opcode, destination and length."""

_UD = Opcode.UD_SEND_ONLY_IMM

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Prototype:
    """What frames of one opcode, destination and payload length share.

    ``head`` is the first 50 bytes, ``masked`` the same ready for the CRC, ``crc`` the CRC of those, ``size`` the length
    of the frame.
    """

    head: bytes
    masked: U8
    crc: int
    pad: bytes
    size: int


class Encoder:
    """Builds the frames of one rank. Misuse (unknown peer, payload over the MTU, missing header) raises ValueError."""

    def __init__(self, comm: Communicator, rank: int, templates: Mapping[Opcode, bytes]) -> None:
        self._comm = comm
        self._own = comm.peers[rank]
        self._headers = {opcode: frame[: -layout.ICRC_LEN] for opcode, frame in templates.items()}
        self._headers[_UD] = _from_queue_pair(self._headers[_UD], comm.ud_qpn)
        self._prototypes: dict[tuple[Opcode, int, int, bool], _Prototype] = {}

    def encode_burst(self, burst: UdBurst) -> list[U8]:
        """Frames of ``burst`` in its order; each is an array of its own length."""
        lengths = [len(payload) for payload in burst.payloads]
        self._check_burst(burst, lengths)
        distinct = dict.fromkeys(lengths)
        if len(distinct) == 1:
            return list(self._encode_equal(burst.group, lengths[0], burst.psn, burst.imm, burst.payloads))
        frames: list[U8] = [np.empty(0, np.uint8)] * len(lengths)
        for length in distinct:
            rows = [i for i, other in enumerate(lengths) if other == length]
            payloads = [burst.payloads[i] for i in rows]
            block = self._encode_equal(burst.group, length, burst.psn[rows], burst.imm[rows], payloads)
            for i, frame in zip(rows, block, strict=True):
                frames[i] = frame
        return frames

    def encode_rc(self, packet: RcPacket) -> bytes:
        """The frame of one packet of a reliable connection."""
        payload = cast(bytes, packet.payload)  # arrays are buffers as well; typeshed knows from Python 3.12 on
        proto = self._prototype(packet.opcode, packet.peer, len(payload), bulk=packet.bulk)
        if not 0 <= packet.psn < 1 << 24:
            raise ValueError(f"PSN {packet.psn}: it has 24 bits")
        tail = struct.pack("!I", packet.ack_request << 31 | packet.psn) + _extended_headers(packet)
        crc = crc32(proto.pad, crc32(payload, crc32(tail, proto.crc)))
        return b"".join((proto.head, tail, payload, proto.pad, crc.to_bytes(layout.ICRC_LEN, "little")))

    def encode_write(self, burst: WriteBurst) -> list[bytes | U8]:
        """The frames of part of an RDMA WRITE: those in the middle of the message as rows of one array."""
        mtu = self._comm.mtu
        count = packets_of(len(burst.payload), mtu)
        if not 0 <= burst.first < burst.stop <= count:
            raise ValueError(f"packets {burst.first} to {burst.stop - 1}: the message has {count}")
        frames: list[bytes | U8] = []
        first, stop = max(burst.first, 1), min(burst.stop, count - 1)
        if burst.first == 0:
            frames.append(self._encode_write_end(burst, 0, count))
        if first < stop:
            frames.extend(self._encode_middles(burst, first, stop))
        if burst.stop == count > 1:
            frames.append(self._encode_write_end(burst, count - 1, count))
        return frames

    def _encode_write_end(self, burst: WriteBurst, index: int, count: int) -> bytes:
        opcode, mtu = write_opcode(index, count), self._comm.mtu
        return self.encode_rc(
            RcPacket(
                opcode,
                burst.peer,
                burst.psn + index & 0xFFFFFF,
                burst.ack_request and index == burst.stop - 1,
                burst.imm if opcode in layout.IMM_OPCODES else None,
                burst.reth if opcode in layout.RETH_OPCODES else None,
                payload=burst.payload[index * mtu : (index + 1) * mtu],
                bulk=True,
            )
        )

    def _encode_middles(self, burst: WriteBurst, first: int, stop: int) -> U8:
        mtu = self._comm.mtu
        proto = self._prototype(Opcode.RC_WRITE_MIDDLE, burst.peer, mtu, bulk=True)
        frames = np.empty((stop - first, proto.size), np.uint8)
        frames[:, :_HEAD] = proto.masked
        psn = _big_endian(frames, layout.BTH_ACKREQ)
        psn[:] = (np.arange(first, stop, dtype=np.uint32) + np.uint32(burst.psn)) & np.uint32(0xFFFFFF)
        if burst.ack_request and stop == burst.stop:
            psn[-1] |= np.uint32(1 << 31)
        payload = burst.payload[first * mtu : stop * mtu].reshape(-1, mtu)
        frames[:, layout.EXTENDED : -layout.ICRC_LEN] = payload
        return _seal(frames, proto)

    def _encode_equal(self, group: int, length: int, psn: U32, imm: U32, payloads: list[U8]) -> U8:
        """Frames whose payloads all have ``length`` bytes, as rows of one array."""
        proto = self._prototype(_UD, group, length)
        header = self._headers[_UD]
        frames = np.empty((len(payloads), proto.size), np.uint8)
        frames[:, :_HEAD] = proto.masked
        frames[:, _HEAD : len(header)] = np.frombuffer(header, np.uint8)[_HEAD:]
        _big_endian(frames, layout.BTH_ACKREQ)[:] = psn
        _big_endian(frames, layout.UD_IMM)[:] = imm
        end = layout.UD_PAYLOAD + length
        for row, payload in zip(frames, payloads, strict=True):
            row[layout.UD_PAYLOAD : end] = payload
        frames[:, end : -layout.ICRC_LEN] = 0
        return _seal(frames, proto)

    def _check_burst(self, burst: UdBurst, lengths: list[int]) -> None:
        if not len(lengths) == len(burst.psn) == len(burst.imm):
            counts = f"{len(lengths)} payloads, {len(burst.psn)} PSNs and {len(burst.imm)} immediates"
            raise ValueError(f"burst with {counts}: as many of each are needed")
        if len(lengths) and int(burst.psn.max()) >= 1 << 24:
            raise ValueError(f"PSN {int(burst.psn.max())}: it has 24 bits")

    def _prototype(self, opcode: Opcode, destination: int, length: int, *, bulk: bool = False) -> _Prototype:
        """``destination`` is a group's index for a datagram, a rank otherwise."""
        key = (opcode, destination, length, bulk)
        proto = self._prototypes.get(key)
        if proto is None:
            proto = self._prototypes[key] = self._build(opcode, destination, length, bulk=bulk)
        return proto

    def _build(self, opcode: Opcode, destination: int, length: int, *, bulk: bool) -> _Prototype:
        if length > self._comm.mtu:
            raise ValueError(f"payload of {length} bytes: the path MTU is {self._comm.mtu}")
        if length and opcode in layout.NO_PAYLOAD_OPCODES:
            raise ValueError(f"payload of {length} bytes in {opcode.name}: it carries none")
        to: Peer | GroupAddress
        if opcode is _UD:
            to, qpn = _pick(self._comm.groups, destination, "multicast tree"), MULTICAST_QPN
        else:
            base = self._comm.bulk_qpn if bulk else self._comm.rc_qpn
            to, qpn = _pick(self._comm.peers, destination, "rank"), base + self._own.rank
        head = bytearray(self._headers[opcode])
        pad = -length % 4
        size = len(head) + length + pad + layout.ICRC_LEN
        _write_addresses(head, self._own, to, qpn)
        struct.pack_into("!H", head, layout.IP_TOTAL_LENGTH, size - layout.ETH_LEN)
        struct.pack_into("!H", head, layout.UDP_LENGTH, size - layout.ETH_LEN - layout.IP_LEN)
        struct.pack_into("!H", head, layout.IP_CHECKSUM, _ip_checksum(head))
        head[layout.BTH_FLAGS] |= pad << 4
        masked = np.frombuffer(bytes(head[:_HEAD]), np.uint8) | HEADER_MASK[:_HEAD]
        return _Prototype(bytes(head[:_HEAD]), masked, crc32(masked[COVERED:]), bytes(pad), size)


def _seal(frames: U8, proto: _Prototype) -> U8:
    """Give rows whose headers are still masked their ICRC, then the headers' real values."""
    crcs = [crc32(row) for row in frames[:, COVERED : -layout.ICRC_LEN]]
    frames[:, -layout.ICRC_LEN :].view("<u4")[:, 0] = crcs
    frames[:, :_HEAD] = np.frombuffer(proto.head, np.uint8)
    return frames


def _pick(items: tuple[_T, ...], index: int, what: str) -> _T:
    if not 0 <= index < len(items):
        raise ValueError(f"{what} {index}: this communicator has 0 to {len(items) - 1}")
    return items[index]


def _big_endian(frames: U8, offset: int) -> U32:
    """The 4 bytes at ``offset`` of each row as a writable column of integers in network order."""
    column: U32 = frames[:, offset : offset + 4].view(">u4")[:, 0]
    return column


def _from_queue_pair(chunk: bytes, qpn: int) -> bytes:
    """A multicast chunk's header with ``qpn`` as its source queue pair."""
    return chunk[: layout.UD_SRC_QPN] + qpn.to_bytes(3, "big") + chunk[layout.UD_IMM :]


def _write_addresses(head: bytearray, own: Peer, to: Peer | GroupAddress, qpn: int) -> None:
    head[0:12] = to.mac + own.mac
    struct.pack_into("!II", head, layout.IP_SRC, own.ip, to.ip)
    struct.pack_into("!H", head, layout.UDP_SPORT, source_port(own.ip, to.ip, qpn))
    head[layout.BTH_QPN : layout.BTH_QPN + 3] = qpn.to_bytes(3, "big")


def source_port(src_ip: int, dst_ip: int, qpn: int) -> int:
    """UDP source port of a flow: constant for a queue pair, different between them, for switches that spread by hash.

    Annex A17 leaves it to the sender; like other implementations it stays within the dynamic ports, 0xC000 and up.
    """
    mixed = (src_ip * 0x9E3779B1 ^ dst_ip * 0x85EBCA77 ^ qpn * 0xC2B2AE3D) & 0xFFFFFFFF
    return 0xC000 | (mixed ^ mixed >> 15) & 0x3FFF


def _ip_checksum(head: bytearray) -> int:
    """Header checksum with its own field taken as zero (RFC 791, 3.1)."""
    words = struct.unpack_from("!10H", head, layout.IP)
    total: int = sum(words) - int.from_bytes(head[layout.IP_CHECKSUM : layout.IP_CHECKSUM + 2], "big")
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _extended_headers(packet: RcPacket) -> bytes:
    """RETH, AETH and ImmDt, whichever the opcode has; ValueError if the packet has others."""
    _check_extended(packet)
    parts: list[bytes] = []
    if packet.reth is not None:
        parts.append(struct.pack("!QII", *packet.reth))
    if packet.aeth is not None:
        parts.append(struct.pack("!I", packet.aeth.syndrome << 24 | packet.aeth.msn))
    if packet.imm is not None:
        parts.append(struct.pack("!I", packet.imm))
    return b"".join(parts)


def _check_extended(packet: RcPacket) -> None:
    opcode = packet.opcode
    for name, value, opcodes in (
        ("reth", packet.reth, layout.RETH_OPCODES),
        ("aeth", packet.aeth, layout.AETH_OPCODES),
        ("imm", packet.imm, layout.IMM_OPCODES),
    ):
        if (value is not None) != (opcode in opcodes):
            found = "without" if value is None else "with"
            raise ValueError(f"{opcode.name} {found} {name}: the opcode says otherwise (IBTA vol. 1, table 38)")
