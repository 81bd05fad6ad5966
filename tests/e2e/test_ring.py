"""The packet ring over a virtual cable: every frame is received or counted, whole, in order, and only what is ours."""

from __future__ import annotations

import select
import socket
import struct
from dataclasses import replace

import numpy as np
import pytest

from endpoints.core.communicator import Communicator, GroupAddress, Peer
from endpoints.core.packets import Opcode, RcPacket, UdBurst
from endpoints.io import bpf
from endpoints.io.ring import Ring
from endpoints.io.roce_port import RocePort
from endpoints.wire.codec import Codec
from endpoints.wire.templates import build_templates
from tests.e2e.veth_pair import LEFT, LEFT_IP, LEFT_MAC, RIGHT, RIGHT_IP, RIGHT_MAC, command, in_sandbox, needs_root

pytestmark = [needs_root, pytest.mark.root, pytest.mark.stock]

MTU = 4096
GROUP = 0xEF010000
COMM = Communicator(
    (Peer(0, "left", LEFT_MAC, LEFT_IP), Peer(1, "right", RIGHT_MAC, RIGHT_IP)),
    (GroupAddress(GROUP, bytes([1, 0, 0x5E, 1, 0, 0])),),
    MTU,
    50_000_000,
)
SECONDS = 10
"""Bound of every wait; none takes more than milliseconds."""


@pytest.fixture(scope="module")
def left() -> Codec:
    return Codec(COMM, 0, build_templates())


def chunks(left: Codec, first: int, count: int) -> list[np.ndarray]:
    """Frames of numbered chunks with different contents and, now and then, another length."""
    psn = np.arange(first, first + count, dtype=np.uint32)
    payloads = [np.random.default_rng(int(p)).integers(0, 256, MTU - p % 7, dtype=np.uint8) for p in psn]
    return left.encode_burst(UdBurst(0, psn, psn, payloads))


def drain(ring: Ring, count: int = 0, limit: int = 64) -> list[bytes]:
    """Copies of all that has come, after waiting for at least ``count`` frames."""
    found: list[bytes] = []
    while True:
        frames, lengths = ring.take(limit)
        found += [bytes(row[:n]) for row, n in zip(frames, lengths.tolist(), strict=True)]
        ring.release(len(lengths))
        if not len(lengths):
            if len(found) >= count:
                return found
            wait_for(ring)


def take(ring: Ring, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Exactly ``count`` frames, waiting for them; they stay unreleased."""
    while True:
        frames, lengths = ring.take(count)
        if len(lengths) == count:
            return frames, lengths
        wait_for(ring)


def wait_for(ring: Ring, events: int = select.POLLIN) -> int:
    poll = select.poll()
    poll.register(ring.fileno(), events)
    ((_, found),) = poll.poll(SECONDS * 1000)
    return found


def test_ten_thousand_frames_come_whole_and_in_order_round_the_ring(left):
    def body():
        with Ring(LEFT, MTU) as out, Ring(RIGHT, MTU, frames=300) as ring:
            for first in range(0, 10_000, 200):
                sent = [bytes(frame) for frame in chunks(left, first, 200)]
                assert all(map(out.send, sent))
                assert drain(ring, len(sent), limit=1 + first % 90) == sent
            assert ring.geometry.slots < 1000  # so that it went round more than ten times
            assert ring.statistics() == (10_000, 0)

    in_sandbox(body)


def test_frames_beyond_a_full_ring_are_counted_and_the_first_kept(left):
    def body():
        with Ring(LEFT, MTU) as out, Ring(RIGHT, MTU, frames=300) as ring:
            sent = [bytes(frame) for frame in chunks(left, 0, 50)] * 200
            assert all(map(out.send, sent))
            got = drain(ring, ring.geometry.slots)
            received, dropped = ring.statistics()
            assert received + dropped == len(sent) == 10_000
            assert dropped == 10_000 - ring.geometry.slots
            assert got == sent[: ring.geometry.slots]
            assert out.send(sent[0])
            assert drain(ring, 1) == sent[:1]
            assert ring.statistics() == (received + 1, dropped)

    in_sandbox(body)


def test_views_hold_until_released(left):
    def body():
        with Ring(LEFT, MTU) as out, Ring(RIGHT, MTU) as ring:
            sent = [bytes(frame) for frame in chunks(left, 0, 40)]
            assert all(map(out.send, sent[:20]))
            frames, lengths = take(ring, 20)
            assert all(map(out.send, sent[20:]))
            assert [bytes(row[:n]) for row, n in zip(frames, lengths, strict=True)] == sent[:20]
            ring.release(15)
            assert drain(ring, 25) == sent[15:]
            with pytest.raises(ValueError, match="release of 1 slots"):
                ring.release(1)

    in_sandbox(body)


def test_only_roce_comes_in_and_nothing_of_our_own(left):
    def body():
        chunk = bytes(chunks(left, 1, 1)[0])
        strangers = [
            chunk[:36] + b"\x12\xb6" + chunk[38:],  # another UDP port
            chunk[:23] + b"\x06" + chunk[24:],  # TCP
            chunk[:20] + b"\x00\x01" + chunk[22:],  # a later fragment
            chunk[:12] + b"\x86\xdd" + chunk[14:],  # IPv6
        ]
        with Ring(LEFT, MTU) as out, Ring(RIGHT, MTU) as ring:
            for frame in [chunk, *strangers, chunk]:
                assert out.send(frame)
            assert drain(ring, 2) == [chunk, chunk]
            assert drain(out) == []

    in_sandbox(body)


def test_frame_longer_than_a_slot_is_cut_and_refused_as_truncated(left):
    def body():
        with Ring(LEFT, MTU) as out, Ring(RIGHT, 256) as ring:
            assert out.send(chunks(left, 0, 1)[0])
            frames, lengths = take(ring, 1)
            assert lengths[0] == frames.shape[1] < MTU
            small = Communicator(COMM.peers, COMM.groups, 256, COMM.rate_bps)
            assert Codec(small, 1, build_templates()).decode(frames, lengths).rejected == {"truncated": 1}

    in_sandbox(body)


def test_full_send_buffer_says_no_and_loses_nothing(left):
    def body():
        command(f"tc qdisc add dev {LEFT} root tbf rate 20mbit burst 16kb limit 64mb")
        with Ring(LEFT, MTU, send_buffer=1 << 20) as out, Ring(RIGHT, MTU, frames=4000) as ring:
            frame = bytes(chunks(left, 0, 1)[0])
            sent = 0
            while out.send(frame):
                sent += 1
                assert sent < 4000, "the send buffer has no end"
            assert sent > 100
            assert wait_for(out, select.POLLOUT) == select.POLLOUT
            assert out.send(frame)
            assert len(drain(ring, sent + 1)) == sent + 1
            assert ring.statistics() == (sent + 1, 0)

    in_sandbox(body)


def test_dead_link_swallows_frames_and_wakes_nobody_for_ever(left):
    def body():
        frame = bytes(chunks(left, 0, 1)[0])
        with Ring(LEFT, MTU) as out, Ring(RIGHT, MTU) as ring:
            command(f"ip link set {LEFT} down")
            assert out.send(frame)
            assert out.send(frame)
            assert out.lost_on_dead_link == 2
            assert drain(out) == []
            poll = select.poll()
            poll.register(out.fileno(), select.POLLIN)
            assert poll.poll(0) == []
            command(f"ip link set {LEFT} up")
            assert out.send(frame)
            assert drain(ring, 1) == [frame]

    in_sandbox(body)


def test_decoded_from_the_ring_every_byte_is_right(left):
    def body():
        right = Codec(COMM, 1, build_templates())
        payload = np.random.default_rng(5).integers(0, 256, (32, MTU), dtype=np.uint8)
        psn = np.random.default_rng(6).permutation(32).astype(np.uint32)
        placed = np.zeros_like(payload)
        with Ring(LEFT, MTU) as out, Ring(RIGHT, MTU) as ring:
            for frame in left.encode_burst(UdBurst(0, psn, psn, [payload[p] for p in psn])):
                assert out.send(frame)
            assert out.send(left.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 1, 5, payload=b"hello")))
            frames, lengths = take(ring, 33)
            batch = right.decode(frames, lengths)
            placed[batch.chunks.psn] = batch.chunks.payload
            assert np.shares_memory(batch.chunks.payload, frames)
            assert bytes(batch.rc[0].payload) == b"hello"
            assert batch.rejected == {}
        assert (placed == payload).all()

    in_sandbox(body)


class Listener:
    """All that arrives on the left, where the kernel has no address."""

    def __init__(self) -> None:
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.sock.bind((LEFT, 3))
        self.sock.settimeout(SECONDS)

    def until(self, protocol: int) -> list[bytes]:
        """The datagrams up to and including the first of an IP protocol."""
        found: list[bytes] = []
        while not found or found[-1][9] != protocol:
            frame, (_, _, kind, *_) = self.sock.recvfrom(9100)
            if kind != socket.PACKET_OUTGOING and frame[12:14] == b"\x08\x00":
                found.append(frame[14:])
        return found


def test_kernel_answers_no_roce_frame_while_the_port_is_held(left):
    def body():
        frame = left.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 1, 5, payload=b"hello"))
        closed = bytes(frame[:36]) + b"\x12\xb8" + bytes(frame[38:])  # the next port, which nobody holds
        with Ring(LEFT, MTU) as out, RocePort(RIGHT):
            listener = Listener()
            assert out.send(frame)
            assert out.send(closed)  # its ICMP answer shows that the kernel has dealt with the frame before it
            (answer,) = listener.until(socket.IPPROTO_ICMP)
            assert answer[20:22] == bytes([3, 3])
            assert answer[28 + 22 : 28 + 24] == b"\x12\xb8"

    in_sandbox(body)


def test_without_the_port_the_kernel_does_answer(left):
    def body():
        with Ring(LEFT, MTU) as out:
            listener = Listener()
            assert out.send(left.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 1, 5, payload=b"hello")))
            (answer,) = listener.until(socket.IPPROTO_ICMP)
            assert answer[28 + 22 : 28 + 24] == b"\x12\xb7"

    in_sandbox(body)


def test_kernel_reports_groups_that_are_joined_and_left():
    def body():
        def record(kind: int) -> bytes:
            return bytes([kind, 0, 0, 0]) + struct.pack("!I", GROUP)

        listener = Listener()
        with RocePort(RIGHT) as port:
            port.join([GROUP])
            report = listener.until(socket.IPPROTO_IGMP)[-1]
            assert record(4) in report  # IGMPv3: changed to "all sources but none" (RFC 3376, 4.2.12)
            port.leave([GROUP])
            while record(3) not in listener.until(socket.IPPROTO_IGMP)[-1]:  # "no source"; the join is said twice
                pass
            with pytest.raises(OSError, match=r"multicast group 239\.1\.0\.0"):
                port.leave([GROUP])

    in_sandbox(body)


def test_each_workers_ring_has_its_own_frames_and_wakes_for_no_others():
    def body():
        trees = (*COMM.groups, GroupAddress(GROUP + 1, bytes([1, 0, 0x5E, 1, 0, 1])))
        shares = [replace(COMM, groups=trees).share(worker, 2) for worker in range(2)]
        sent = []
        for share in shares:
            codec, psn = Codec(share, 0, build_templates()), np.arange(20, dtype=np.uint32)
            burst = UdBurst(0, psn, psn, [np.full(MTU, p, np.uint8) for p in psn])
            frames = [bytes(frame) for frame in codec.encode_burst(burst)]
            sent.append([*frames, codec.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 1, 5, payload=b"hello"))])
        programs = [bpf.addressed_to(share) for share in shares]
        with (
            Ring(LEFT, MTU) as out,
            Ring(RIGHT, MTU, program=programs[0]) as one,
            Ring(RIGHT, MTU, program=programs[1]) as two,
        ):
            assert all(map(out.send, sent[0]))
            assert drain(one, len(sent[0])) == sent[0]
            asleep = select.poll()
            asleep.register(two.fileno(), select.POLLIN)
            assert asleep.poll(0) == []
            assert all(map(out.send, sent[1]))
            assert drain(two, len(sent[1])) == sent[1]
            assert [ring.statistics() for ring in (one, two)] == [(21, 0), (21, 0)]

    in_sandbox(body)


def test_workers_hold_the_port_together_and_each_joins_its_groups():
    def body():
        with RocePort(RIGHT, shared=True) as one, RocePort(RIGHT, shared=True) as two:
            listener = Listener()
            for port, group in ((one, GROUP), (two, GROUP + 1)):
                port.join([group])
                while struct.pack("!I", group) not in listener.until(socket.IPPROTO_IGMP)[-1]:
                    pass
                with pytest.raises(OSError, match="multicast group"):
                    port.leave([GROUP + (group == GROUP)])
            with pytest.raises(OSError, match="UDP port 4791 of RoCE on right0"):
                RocePort(RIGHT)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger, pytest.raises(OSError, match="in use"):
                stranger.bind(("", 4791))
        with RocePort(RIGHT), pytest.raises(OSError, match="UDP port 4791 of RoCE on right0"):
            RocePort(RIGHT, shared=True)

    in_sandbox(body)


def test_port_that_is_taken_is_named():
    def body():
        with RocePort(RIGHT), pytest.raises(OSError, match="UDP port 4791 of RoCE on right0"):
            RocePort(RIGHT)

    in_sandbox(body)
