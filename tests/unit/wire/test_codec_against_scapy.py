"""The codec and Scapy say the same bytes, for every frame type and in both directions."""

from __future__ import annotations

import socket
import struct

import numpy as np
import pytest

from endpoints.core import layout
from endpoints.core.communicator import MULTICAST_QPN, RC_QPN_BASE
from endpoints.core.packets import Aeth, Opcode, RcPacket, Reth, UdBurst, WriteBurst, packets_of, write_opcode
from endpoints.wire.codec import Codec, stack
from endpoints.wire.encode import source_port
from endpoints.wire.layers import AETH, BTH, DETH, IP, RETH, UDP, Ether, ImmDt, Raw

RC_OPCODES = [opcode for opcode in Opcode if opcode is not Opcode.UD_SEND_ONLY_IMM]
LENGTHS = [0, 1, 2, 3, 4, 255, 1024]


def rc_packet(opcode: Opcode, length: int, peer: int = 3) -> RcPacket:
    """A packet with every header that its opcode has, all fields different from zero."""
    payload = bytes((7 * i + length) % 256 for i in range(0 if opcode in layout.NO_PAYLOAD_OPCODES else length))
    return RcPacket(
        opcode,
        peer,
        psn=0xABCDE0 + int(opcode),
        ack_request=bool(length % 2),
        imm=0xDEADBEEF if opcode in layout.IMM_OPCODES else None,
        reth=Reth(0x1122334455667788, 0x99AABBCC, 123456) if opcode in layout.RETH_OPCODES else None,
        aeth=Aeth(0x1F, 0x010203) if opcode in layout.AETH_OPCODES else None,
        payload=payload,
    )


def envelope(comm, src: int, to, qpn: int):
    """Ethernet, IP and UDP as Scapy builds them, lengths and checksum left to Scapy."""
    own = comm.peers[src]
    return (
        Ether(dst=to.mac, src=own.mac)
        / IP(src=ip(own.ip), dst=ip(to.ip), flags="DF", id=0, ttl=64)
        / UDP(sport=source_port(own.ip, to.ip, qpn), dport=layout.ROCE_PORT, chksum=0)
    )


def ip(address: int) -> str:
    return socket.inet_ntoa(struct.pack("!I", address))


def scapy_rc(comm, src: int, packet: RcPacket) -> bytes:
    payload = bytes(packet.payload)
    pad = -len(payload) % 4
    qpn = (comm.bulk_qpn if packet.bulk else comm.rc_qpn) + src
    frame = envelope(comm, src, comm.peers[packet.peer], qpn) / BTH(
        opcode=int(packet.opcode), padcount=pad, dqpn=qpn, ackreq=packet.ack_request, psn=packet.psn
    )
    if packet.reth:
        frame /= RETH(va=packet.reth.va, rkey=packet.reth.rkey, dmalen=packet.reth.length)
    if packet.aeth:
        frame /= AETH(syndrome=packet.aeth.syndrome, msn=packet.aeth.msn)
    if packet.imm is not None:
        frame /= ImmDt(data=packet.imm)
    return bytes(frame / Raw(payload + bytes(pad)))


def scapy_chunk(comm, src: int, group: int, psn: int, imm: int, payload: bytes) -> bytes:
    pad = -len(payload) % 4
    bth = BTH(opcode=0x65, padcount=pad, dqpn=MULTICAST_QPN, psn=psn)
    headers = bth / DETH(qkey=layout.QKEY, srcqp=comm.ud_qpn) / ImmDt(data=imm)
    return bytes(envelope(comm, src, comm.groups[group], MULTICAST_QPN) / headers / Raw(payload + bytes(pad)))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("opcode", RC_OPCODES, ids=lambda opcode: opcode.name)
def test_reliable_packet_equals_scapys(comm, sender, opcode, length):
    packet = rc_packet(opcode, length)
    assert sender.encode_rc(packet) == scapy_rc(comm, 1, packet)


@pytest.mark.parametrize("group", [0, 1])
def test_chunks_equal_scapys(comm, sender, group):
    payloads = [np.arange(length, dtype=np.uint32).astype(np.uint8) for length in [1024, *LENGTHS, 1024]]
    psn = np.arange(len(payloads), dtype=np.uint32) * 0x10203 + 5
    imm = psn * np.uint32(97) + np.uint32(0xF0000000)
    frames = sender.encode_burst(UdBurst(group, psn, imm, payloads))
    assert [bytes(frame) for frame in frames] == [
        scapy_chunk(comm, 1, group, int(p), int(i), bytes(data)) for p, i, data in zip(psn, imm, payloads, strict=True)
    ]


@pytest.mark.parametrize("opcode", RC_OPCODES, ids=lambda opcode: opcode.name)
def test_scapy_dissects_and_rebuilds_our_reliable_packet(sender, opcode):
    packet = rc_packet(opcode, 6)
    data = sender.encode_rc(packet)
    frame = Ether(data)
    assert (frame[BTH].opcode, frame[BTH].psn, frame[BTH].dqpn) == (int(opcode), packet.psn, RC_QPN_BASE + 1)
    assert (RETH in frame, AETH in frame, ImmDt in frame) == (
        packet.reth is not None,
        packet.aeth is not None,
        packet.imm is not None,
    )
    if packet.imm is not None:
        assert frame[ImmDt].data == packet.imm
    if packet.reth is not None:
        assert (frame[RETH].va, frame[RETH].rkey, frame[RETH].dmalen) == tuple(packet.reth)
    if packet.aeth is not None:
        assert (frame[AETH].syndrome, frame[AETH].msn) == tuple(packet.aeth)
    assert rebuilt(frame) == data


def test_scapy_dissects_and_rebuilds_our_chunk(sender):
    (data,) = sender.encode_burst(
        UdBurst(1, np.array([77], np.uint32), np.array([0x0500004D], np.uint32), [np.arange(9, dtype=np.uint8)])
    )
    frame = Ether(bytes(data))
    assert (frame[DETH].qkey, frame[DETH].srcqp) == (layout.QKEY, 0x10)
    assert frame[ImmDt].data == 0x0500004D
    assert frame[BTH].padcount == 3
    assert bytes(frame[Raw]) == bytes(range(9)) + bytes(3)
    assert rebuilt(frame) == bytes(data)


def rebuilt(frame) -> bytes:
    """Everything that Scapy computes, computed by Scapy: lengths, IP checksum, ICRC."""
    del frame[IP].len, frame[IP].chksum, frame[UDP].len, frame[BTH].icrc
    return bytes(frame)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("opcode", RC_OPCODES, ids=lambda opcode: opcode.name)
def test_scapys_reliable_packet_is_read(comm, receiver, opcode, length):
    sent = rc_packet(opcode, length)
    batch = receiver.decode(*stack([scapy_rc(comm, 1, sent)], comm.mtu))
    assert (batch.rejected, batch.chunks) == ({}, None)
    (got,) = batch.rc
    assert bytes(got.payload) == sent.payload
    sent.peer, sent.payload, got.payload = 1, b"", b""
    assert got == sent


def test_scapys_chunks_are_read_in_order(comm, receiver):
    sent = [(src, group, 100 * src + i, i << 24 | 5, bytes([i]) * length)
            for i, length in enumerate([1024, 1024, 3, 1024, 0]) for src in (0, 1, 4) for group in (0, 1)]  # fmt: skip
    batch = receiver.decode(*stack([scapy_chunk(comm, *chunk) for chunk in sent], comm.mtu))
    assert (batch.rejected, batch.rc) == ({}, [])
    chunks = batch.chunks
    assert chunks.src.tolist() == [src for src, *_ in sent]
    assert chunks.psn.tolist() == [psn for _, _, psn, _, _ in sent]
    assert chunks.imm.tolist() == [imm for _, _, _, imm, _ in sent]
    assert [bytes(row[:n]) for row, n in zip(chunks.payload, chunks.length, strict=True)] == [s[-1] for s in sent]
    assert chunks.payload.shape == (len(sent), comm.mtu)


def write(length: int, first: int = 0, stop: int | None = None, *, ask: bool = True) -> WriteBurst:
    """Packets of one RDMA WRITE of rank 1 to rank 3; its PSNs wrap within."""
    payload = np.arange(length, dtype=np.uint32).astype(np.uint8)
    stop = packets_of(length, 1024) if stop is None else stop
    return WriteBurst(3, 0xFFFFFE, Reth(0x1122334455667788, 0x99AABBCC, length), 0xDEADBEEF, payload, first, stop, ask)


def packets(burst: WriteBurst) -> list[RcPacket]:
    """The same packet by packet."""
    count = packets_of(len(burst.payload), 1024)
    return [
        RcPacket(
            opcode := write_opcode(index, count),
            burst.peer,
            (burst.psn + index) % (1 << 24),
            burst.ack_request and index == burst.stop - 1,
            burst.imm if opcode in layout.IMM_OPCODES else None,
            burst.reth if opcode in layout.RETH_OPCODES else None,
            payload=bytes(burst.payload[index * 1024 : (index + 1) * 1024]),
            bulk=True,
        )
        for index in range(burst.first, burst.stop)
    ]


WRITES = [write(n) for n in (0, 1, 1023, 1024, 1025, 2048, 2050, 7 * 1024, 7 * 1024 + 3)] + [
    write(8 * 1024, 0, 1), write(8 * 1024, 3, 4), write(8 * 1024, 2, 8, ask=False), write(8 * 1024, 0, 5),
]  # fmt: skip


@pytest.mark.parametrize("burst", WRITES, ids=lambda b: f"{len(b.payload)} bytes {b.first}-{b.stop}")
def test_writes_equal_scapys_and_their_length_is_as_told(comm, sender, burst):
    frames = [bytes(frame) for frame in sender.encode(burst)]
    assert frames == [scapy_rc(comm, 1, packet) for packet in packets(burst)]
    if burst.stop - burst.first == packets_of(len(burst.payload), 1024):
        assert sum(map(len, frames)) == layout.write_wire_bytes(len(burst.payload), 1024)


@pytest.mark.parametrize("together", [True, False], ids=["by columns", "one by one"])
def test_scapys_writes_are_read(comm, receiver, together):
    sent = [packet for burst in WRITES for packet in packets(burst)]
    frames = [scapy_rc(comm, 1, packet) for packet in sent]
    groups = [frames] if together else [[frame] for frame in frames]
    got = []
    for group in groups:
        batch = receiver.decode(*stack(group, comm.mtu))
        assert (batch.rejected, batch.rc, batch.chunks) == ({}, [], None)
        w = batch.writes
        for i in range(len(w)):
            opcode = Opcode(int(w.opcode[i]))
            reth, imm = Reth(int(w.va[i]), int(w.rkey[i]), int(w.size[i])), int(w.imm[i])
            payload = bytes(w.payloads(i, i + 1)[0])
            has = opcode in layout.RETH_OPCODES, opcode in layout.IMM_OPCODES
            got.append((opcode, w.src[i], w.psn[i], w.ack_request[i], reth if has[0] else None, imm if has[1] else None,
                        payload))  # fmt: skip
    assert got == [(p.opcode, 1, p.psn, p.ack_request, p.reth, p.imm, p.payload) for p in sent]


def test_an_acknowledgement_of_the_bulk_connection_is_told_from_the_other_ones(comm, sender, receiver):
    for bulk in (False, True):
        sent = RcPacket(Opcode.RC_ACKNOWLEDGE, 3, 5, aeth=Aeth(0x1F, 9), bulk=bulk)
        assert sender.encode_rc(sent) == scapy_rc(comm, 1, sent)
        (got,) = receiver.decode(*stack([sender.encode_rc(sent)], comm.mtu)).rc
        assert got.bulk is bulk


@pytest.mark.parametrize("worker", [0, 1])
def test_frames_of_a_worker_equal_scapys_and_are_read_by_that_worker_alone(comm, templates, worker):
    shares = [comm.share(w, 2) for w in range(2)]
    own, other = shares[worker], shares[1 - worker]
    codec = Codec(own, 1, templates)
    burst = UdBurst(0, np.arange(5, dtype=np.uint32), np.arange(5, dtype=np.uint32), [np.ones(1024, np.uint8)] * 5)
    chunks = [bytes(frame) for frame in codec.encode_burst(burst)]
    assert chunks == [scapy_chunk(own, 1, 0, i, i, bytes([1]) * 1024) for i in range(5)]
    packets = [rc_packet(opcode, 8) for opcode in (Opcode.RC_SEND_ONLY, Opcode.RC_WRITE_ONLY)]
    packets[1].bulk = True
    reliable = [codec.encode_rc(packet) for packet in packets]
    assert reliable == [scapy_rc(own, 1, packet) for packet in packets]
    mine = Codec(own, 3, templates).decode(*stack(chunks + reliable, comm.mtu))
    assert (len(mine.chunks.src), len(mine.rc), len(mine.writes), mine.rejected) == (5, 1, 1, {})
    others = Codec(other, 3, templates).decode(*stack(chunks + reliable, comm.mtu))
    assert (others.chunks, others.rc, others.writes) == (None, [], None)
    assert others.rejected == {"wrong_destination": 5, "unknown_qp": 2}
