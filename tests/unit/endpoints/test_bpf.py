"""Which frames come into whose ring: the filters of hosts and of workers, in an interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core.communicator import WORKERS, Communicator, GroupAddress, Peer
from endpoints.core.packets import Opcode, RcPacket, UdBurst
from endpoints.io import bpf
from endpoints.wire.codec import Codec
from endpoints.wire.templates import build_templates
from tests.unit.topo.classic_bpf import run
from topo.impairments.bpf import Instruction, Program

TEMPLATES = build_templates()


def communicator(trees: int) -> Communicator:
    peers = tuple(Peer(rank, f"h{rank + 1}", bytes([2, 0, 0, 0, 0, rank]), 0x0A000001 + rank) for rank in range(3))
    groups = tuple(GroupAddress(0xEFC00001 + t, bytes([1, 0, 0x5E, 0x40, t >> 8, t & 0xFF])) for t in range(trees))
    return Communicator(peers, groups, 1024, 50_000_000)


def takes(comm: Communicator, frame: bytes) -> bool:
    found = run(Program(tuple(Instruction(*one) for one in bpf.addressed_to(comm))), frame)
    assert found in {0, 0xFFFFFFFF}
    return found > 0


def chunks(comm: Communicator) -> list[bytes]:
    """One to each tree."""
    one = np.ones(1, np.uint32)
    codec = Codec(comm, 0, TEMPLATES)
    bursts = (UdBurst(tree, one, one, [np.zeros(8, np.uint8)]) for tree in range(len(comm.groups)))
    return [bytes(frame) for burst in bursts for frame in codec.encode_burst(burst)]


def reliable(comm: Communicator) -> list[bytes]:
    """A message and a WRITE in this epoch, and in the last one."""
    found = []
    for epoch in (comm, comm.shrink(()), *[comm.shrink(()).shrink(())] * 13):
        codec = Codec(epoch, 0, TEMPLATES)
        found += [
            codec.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 1, 5, payload=b"hello")),
            codec.encode_rc(RcPacket(Opcode.RC_WRITE_MIDDLE, 1, 5, payload=bytes(1024), bulk=True)),
        ]
    return found


def with_options(frame: bytes) -> bytes:
    """The same datagram behind an IP header with 8 bytes of options."""
    return frame[:14] + bytes([0x47]) + frame[15:34] + bytes([1] * 8) + frame[34:]


@pytest.mark.parametrize("workers", range(1, WORKERS + 1))
def test_each_frame_is_one_workers(workers):
    whole = communicator(WORKERS + 3)
    shares = [whole.share(worker, workers) for worker in range(workers)]
    for share in shares:
        frames = chunks(share) + reliable(share)
        for frame in (*frames, *map(with_options, frames)):
            assert [takes(other, frame) for other in shares] == [other is share for other in shares]


@pytest.mark.parametrize("workers", [1, 2])
def test_nobody_takes_what_is_no_roce(workers):
    whole = communicator(2)
    for worker in range(workers):
        share = whole.share(worker, workers)
        for frame in chunks(share) + reliable(share)[:2]:
            assert takes(share, frame)
            for stranger in (
                frame[:36] + b"\x12\xb6" + frame[38:],  # another UDP port
                frame[:23] + b"\x06" + frame[24:],  # TCP
                frame[:20] + b"\x00\x01" + frame[22:],  # a later fragment
                frame[:12] + b"\x86\xdd" + frame[14:],  # IPv6
                frame[:36],
                b"",
            ):
                assert not takes(share, stranger)


def test_a_worker_takes_neither_a_strangers_tree_nor_queue_pairs_of_workers_that_there_are_not():
    two, three = (communicator(6).share(worker, 3) for worker in (1, 2))
    alone = Communicator(two.peers, three.groups, two.mtu, two.rate_bps)
    assert not any(takes(two, frame) for frame in chunks(alone) + reliable(alone) + reliable(three))
    assert all(takes(alone, frame) for frame in chunks(three) + reliable(three))


def test_hundreds_of_trees_fit():
    share = communicator(1200).share(0, 2)
    frames = chunks(share)
    assert len(bpf.addressed_to(share)) <= 4096  # the kernel's limit
    assert takes(share, frames[0])
    assert takes(share, frames[-1])
