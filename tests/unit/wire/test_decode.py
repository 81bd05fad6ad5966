"""What comes from the network never raises: it is a packet, or counted under the name of the check that it failed."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpoints.core import layout
from endpoints.core.communicator import Communicator, GroupAddress, Peer
from endpoints.core.packets import Aeth, Batch, Opcode, RcPacket, Reth, UdBurst, WriteBurst
from endpoints.wire.codec import Codec, stack
from endpoints.wire.icrc import COVERED, HEADER_MASK, crc32
from endpoints.wire.templates import build_templates

MTU = 256
COMM = Communicator(
    tuple(Peer(r, f"h{r + 1}", bytes([2, 0, 0, 0, r, 1]), 0x0A000001 + (r << 8)) for r in range(5)),
    tuple(GroupAddress(0xEF010000 + g, bytes([1, 0, 0x5E, 1, 0, g])) for g in range(2)),
    MTU,
    50_000_000,
)
TEMPLATES = build_templates()
SENDER, RECEIVER = Codec(COMM, 1, TEMPLATES), Codec(COMM, 3, TEMPLATES)


def chunk(length: int = MTU, psn: int = 7, group: int = 1, codec: Codec = SENDER) -> bytes:
    payload = np.arange(length, dtype=np.uint32).astype(np.uint8)
    burst = UdBurst(group, np.array([psn], np.uint32), np.array([psn], np.uint32), [payload])
    return bytes(codec.encode_burst(burst)[0])


def reliable(opcode: Opcode = Opcode.RC_SEND_ONLY, length: int = 5, codec: Codec = SENDER, peer: int = 3) -> bytes:
    return codec.encode_rc(
        RcPacket(
            opcode,
            peer,
            99,
            imm=1 if opcode in layout.IMM_OPCODES else None,
            reth=Reth(1, 2, 3) if opcode in layout.RETH_OPCODES else None,
            aeth=Aeth(1, 2) if opcode in layout.AETH_OPCODES else None,
            payload=bytes(0 if opcode in layout.NO_PAYLOAD_OPCODES else length),
        )
    )


EVERY_TYPE = [chunk(), chunk(5), chunk(0), *(reliable(o) for o in Opcode if o is not Opcode.UD_SEND_ONLY_IMM)]


def patched(frame: bytes, offset: int, data: bytes) -> bytes:
    """The frame with other bytes at ``offset`` and an ICRC that is right for them."""
    changed = np.frombuffer(bytearray(frame[:offset] + data + frame[offset + len(data) : -4]), np.uint8)
    masked = changed.copy()
    masked[: layout.EXTENDED] |= HEADER_MASK[: len(masked)]
    return bytes(changed) + crc32(masked[COVERED:]).to_bytes(4, "little")


def resized(frame: bytes, payload: int) -> bytes:
    """A frame that has another length, its headers and its ICRC agreeing with it."""
    frame = frame[:-4] + bytes(payload) + frame[-4:] if payload > 0 else frame[: payload - 4] + frame[-4:]
    frame = patched(frame, layout.IP_TOTAL_LENGTH, struct.pack("!H", len(frame) - 14))
    return patched(frame, layout.UDP_LENGTH, struct.pack("!H", len(frame) - 34))


def decode(*frames: bytes) -> Batch:
    return RECEIVER.decode(*stack(frames, MTU))


def stranger(rank: int) -> Codec:
    """A sender that the communicator does not have, in the place of ``rank``."""
    peers = list(COMM.peers)
    peers[rank] = Peer(rank, "x", bytes(6), 0x0B000001)
    return Codec(Communicator(tuple(peers), COMM.groups, MTU, COMM.rate_bps), rank, TEMPLATES)


REFUSED = {
    "an empty frame": (b"", "truncated"),
    "half an Ethernet header": (bytes(13), "truncated"),
    "ARP": (bytes(12) + b"\x08\x06" + bytes(46), "not_roce"),
    "IPv6": (patched(chunk(), 12, b"\x86\xdd"), "not_roce"),
    "IP options": (patched(chunk(), 14, b"\x46"), "not_roce"),
    "IP version 6": (patched(chunk(), 14, b"\x65"), "not_roce"),
    "TCP": (patched(chunk(), 23, b"\x06"), "not_roce"),
    "first fragment": (patched(chunk(), 20, b"\x20\x00"), "not_roce"),
    "later fragment": (patched(chunk(), 20, b"\x00\x01"), "not_roce"),
    "other UDP port": (patched(chunk(), 36, b"\x12\xb6"), "not_roce"),
    "headers alone": (chunk()[:41], "truncated"),
    "cut off": (chunk()[:-1], "truncated"),
    "cut off reliable packet": (reliable()[:-1], "truncated"),
    "IP length one too small": (patched(chunk(), 16, struct.pack("!H", len(chunk()) - 15)), "bad_length"),
    "UDP length one too small": (patched(chunk(), 38, struct.pack("!H", len(chunk()) - 35)), "bad_length"),
    "trailing byte": (chunk() + b"\0", "bad_length"),
    "no room for BTH": (resized(reliable(length=0), -4), "bad_length"),
    "no room for its headers": (resized(reliable(Opcode.RC_WRITE_ONLY, 0), -12), "bad_length"),
    "pad longer than the payload": (patched(reliable(length=0), layout.BTH_FLAGS, b"\x30"), "bad_length"),
    "payload in a READ request": (resized(reliable(Opcode.RC_READ_REQUEST), 4), "bad_length"),
    "payload in an acknowledgement": (resized(reliable(Opcode.RC_ACKNOWLEDGE), 4), "bad_length"),
    "payload over the MTU": (resized(reliable(Opcode.RC_SEND_ONLY, MTU), 4), "bad_length"),
    "chunk over the MTU": (resized(chunk(), 4), "bad_length"),
    "wrong ICRC in a chunk": (chunk()[:-1] + bytes([chunk()[-1] ^ 1]), "bad_icrc"),
    "wrong ICRC in a short chunk": (chunk(5)[:-1] + bytes([chunk(5)[-1] ^ 1]), "bad_icrc"),
    "wrong ICRC in a reliable packet": (reliable()[:-1] + bytes([reliable()[-1] ^ 1]), "bad_icrc"),
    "transport version": (patched(chunk(), layout.BTH_FLAGS, b"\x01"), "not_roce"),
    "unreliable connection": (patched(reliable(), layout.BTH, b"\x24"), "unknown_opcode"),
    "congestion notification": (patched(reliable(), layout.BTH, b"\x81"), "unknown_opcode"),
    "own chunk": (chunk(codec=RECEIVER), "own"),
    "own short chunk": (chunk(5, codec=RECEIVER), "own"),
    "own reliable packet": (reliable(codec=RECEIVER), "own"),
    "stranger's chunk": (chunk(codec=stranger(1)), "unknown_peer"),
    "stranger's short chunk": (chunk(5, codec=stranger(1)), "unknown_peer"),
    "stranger's reliable packet": (reliable(codec=stranger(1)), "unknown_peer"),
    "chunk to another group": (patched(chunk(), layout.IP_DST, bytes([239, 9, 9, 9])), "wrong_destination"),
    "short chunk to another group": (patched(chunk(5), layout.IP_DST, bytes([239, 9, 9, 9])), "wrong_destination"),
    "chunk to this host": (patched(chunk(), layout.IP_DST, struct.pack("!I", COMM.peers[3].ip)), "wrong_destination"),
    "reliable packet to another": (reliable(peer=2), "wrong_destination"),
    "reliable packet to a group": (
        patched(reliable(), layout.IP_DST, struct.pack("!I", COMM.groups[0].ip)),
        "wrong_destination",
    ),
    "chunk's queue pair": (patched(chunk(), layout.BTH_QPN, b"\xff\xff\xfe"), "unknown_qp"),
    "queue pair of another peer": (patched(reliable(), layout.BTH_QPN, b"\x00\x01\x02"), "unknown_qp"),
    "Q_Key": (patched(chunk(), layout.UD_QKEY, b"\x11\x11\x11\x11"), "unknown_qp"),
    "P_Key of a chunk": (patched(chunk(), layout.BTH + 2, b"\x7f\xff"), "unknown_qp"),
    "P_Key of a reliable packet": (patched(reliable(), layout.BTH + 2, b"\x80\x00"), "unknown_qp"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_frame_is_counted_under_its_reason(name):
    frame, reason = REFUSED[name]
    alone = decode(frame)
    assert alone.rejected == {reason: 1}
    assert alone.chunks is None
    assert alone.rc == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused_frame_does_no_harm_among_others(name):
    """By columns as by single frames, at the ends and in the middle."""
    frame, reason = REFUSED[name]
    batch = decode(frame, chunk(psn=1), chunk(psn=2), frame, reliable(), chunk(4, psn=3), chunk(psn=4), frame)
    assert batch.rejected == {reason: 3}
    assert batch.chunks.psn.tolist() == [1, 2, 3, 4]
    assert batch.chunks.length.tolist() == [MTU, MTU, 4, MTU]
    assert all(
        (row[:n] == np.arange(n)).all() for row, n in zip(batch.chunks.payload, batch.chunks.length, strict=True)
    )
    assert len(batch.rc) == 1


def test_refused_full_chunks_are_counted_each_under_its_reason():
    frames = [chunk(psn=i) for i in range(10)]
    frames[2] = frames[2][:-1] + bytes([frames[2][-1] ^ 0x80])
    frames[5] = chunk(codec=stranger(1))
    frames[6] = chunk(codec=RECEIVER)
    batch = decode(*frames)
    assert batch.rejected == {"bad_icrc": 1, "unknown_peer": 1, "own": 1}
    assert batch.chunks.psn.tolist() == [0, 1, 3, 4, 7, 8, 9]
    assert batch.chunks.src.tolist() == [1] * 7


def writes(codec: Codec, peer: int) -> list[bytes]:
    """Full packets of an RDMA WRITE and a shorter last one."""
    payload = np.zeros(3 * MTU - 5, np.uint8)
    burst = WriteBurst(peer, 7, Reth(0, 1, len(payload)), 9, payload, 0, 3)
    return [bytes(frame) for frame in codec.encode_write(burst)]


def test_what_was_sent_before_a_communicator_shrank_meets_no_queue_pair_of_the_smaller_one():
    shrunk = COMM.shrink({4})
    after, receiver = Codec(shrunk, 1, TEMPLATES), Codec(shrunk, 3, TEMPLATES)
    old = [*writes(SENDER, 3), reliable(), reliable(Opcode.RC_ACKNOWLEDGE)]
    assert receiver.decode(*stack(old, MTU)).rejected == {"unknown_qp": len(old)}
    new = receiver.decode(*stack([*writes(after, 3), reliable(codec=after)], MTU))
    assert (new.rejected, len(new.writes), [packet.peer for packet in new.rc]) == ({}, 3, [1])
    assert set(new.writes.src.tolist()) == {1}


def test_fields_that_a_network_may_change_are_ignored():
    frame = bytearray(chunk())
    frame[0:12] = b"\x55" * 12
    for offset in (layout.IP_TOS, layout.IP_TTL, layout.IP_CHECKSUM, layout.UDP_CHECKSUM, layout.BTH_RESV8A):
        frame[offset] ^= 0x81
    for batch in (decode(bytes(frame)), decode(*[bytes(frame)] * 20)):
        assert batch.rejected == {}
        assert set(batch.chunks.psn.tolist()) == {7}


def test_short_frame_padded_by_ethernet_is_read():
    frame = reliable(length=0)
    assert len(frame) == 58
    batch = decode(frame + b"\xaa\xbb")
    assert batch.rejected == {}
    assert len(batch.rc[0].payload) == 0
    assert decode(frame + b"\xaa").rejected == {"bad_length": 1}


@pytest.mark.parametrize("count", [1, 4, 20])
def test_full_chunks_are_views_of_the_ring(count):
    frames, lengths = stack([chunk(psn=i) for i in range(count)], MTU)
    chunks = RECEIVER.decode(frames, lengths).chunks
    assert np.shares_memory(chunks.payload, frames)
    assert chunks.payload.shape == (count, MTU)
    assert (chunks.psn.dtype, chunks.imm.dtype) == (np.uint32, np.uint32)
    assert (chunks.src.dtype, chunks.length.dtype) == (np.int32, np.int32)


def test_reliable_payload_is_a_view_of_the_ring():
    frames, lengths = stack([reliable()], MTU)
    assert np.shares_memory(RECEIVER.decode(frames, lengths).rc[0].payload, frames)


def test_chunks_with_others_at_the_ends_stay_views():
    frames, lengths = stack([reliable(), *(chunk(psn=i) for i in range(6)), reliable()], MTU)
    chunks = RECEIVER.decode(frames, lengths).chunks
    assert np.shares_memory(chunks.payload, frames)
    assert chunks.psn.tolist() == list(range(6))


def test_nothing_gives_nothing():
    assert RECEIVER.decode(np.zeros((0, 400), np.uint8), np.zeros(0, np.int32)) == Batch()


def test_too_narrow_rows_are_the_callers_mistake():
    with pytest.raises(ValueError, match="rows of 333 bytes: an MTU of 256 needs 334"):
        RECEIVER.decode(np.zeros((1, 333), np.uint8), np.array([333]))


@given(st.lists(st.binary(max_size=200), max_size=6), st.integers(0, 400))
def test_random_bytes_are_refused(frames, length):
    batch = decode(*frames, bytes(length))
    assert sum(batch.rejected.values()) == len(frames) + 1


@settings(max_examples=300)
@given(st.sampled_from(EVERY_TYPE), st.data())
def test_random_changes_never_raise_and_every_frame_is_accounted_for(frame, data):
    frame = bytearray(frame)
    for _ in range(data.draw(st.integers(0, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = bytes(frame)[: data.draw(st.integers(0, len(frame)))]
    if len(frame) > 60 and data.draw(st.booleans()):
        frame = patched(frame, 0, b"")  # so that what is behind the ICRC check is reached
    frames, lengths = stack([frame] * data.draw(st.sampled_from([1, 8])), MTU)
    claimed = data.draw(st.sampled_from([len(frame), 0, 57, 58, 60, frames.shape[1], frames.shape[1] + 1, 70_000]))
    lengths[0] = claimed
    batch = RECEIVER.decode(frames, lengths)
    assert len(batch.chunks or ()) + len(batch.rc) + sum(batch.rejected.values()) == len(lengths)


IGNORED_BITS = {
    offset * 8 + bit
    for offset in (*range(12), layout.IP_TOS, layout.IP_TTL, 24, 25, 40, 41, layout.BTH_RESV8A)
    for bit in range(8)
}
"""Both MAC addresses, which are no part of the datagram, and what the ICRC leaves out."""


@pytest.mark.parametrize("frame", EVERY_TYPE, ids=lambda frame: f"{frame[42]:02x}-{len(frame)}")
def test_every_single_wrong_bit_is_refused_or_in_a_field_that_does_not_count(frame):
    bits = len(frame) * 8
    rows = np.unpackbits(np.frombuffer(frame, np.uint8)[None, :].repeat(bits, axis=0), axis=1)
    rows[np.arange(bits), np.arange(bits)] ^= 1
    frames, lengths = stack([row.tobytes() for row in np.packbits(rows, axis=1)], MTU)
    together = RECEIVER.decode(frames.copy(), lengths)
    assert len(together.chunks or ()) + len(together.rc) == len(IGNORED_BITS)
    assert sum(together.rejected.values()) == bits - len(IGNORED_BITS)
    assert set(together.rejected) <= {"not_roce", "truncated", "bad_length", "bad_icrc"}
    for i in range(min(bits, 70 * 8)):
        alone = RECEIVER.decode(frames[i : i + 1], lengths[i : i + 1])
        assert bool(alone.rejected) == (i not in IGNORED_BITS)
