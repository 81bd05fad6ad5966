"""Answers to RTM_GETQDISC, built by the kernel's own layout."""

from __future__ import annotations

import struct

from experiments.fidelity.queues import LEAF, REQUEST, Queue, parse_queues

ROOT = 0x00010000


def attribute(kind: int, body: bytes) -> bytes:
    return (struct.pack("=HH", 4 + len(body), kind) + body).ljust((4 + len(body) + 3) & ~3, b"\0")


def qdisc(index: int, handle: int, kind: bytes, options: bytes, packets: int, size: int) -> bytes:
    statistics = attribute(1, bytes(12)) + attribute(3, struct.pack("=5I", packets, size, 7, 8, 9))
    body = struct.pack("=BxxxiIII", 0, index, handle, 0, 0)
    body += attribute(1, kind + b"\0") + attribute(2, options) + attribute(7 | 0x8000, statistics)
    return struct.pack("=IHHII", 16 + len(body), 36, 2, 1, 0) + body


def test_only_the_leaves_in_which_frames_wait_are_told_with_their_limit() -> None:
    answer = b"".join(
        (
            qdisc(4, ROOT, b"htb", bytes(20), 12, 50_000),
            qdisc(4, LEAF, b"pfifo", struct.pack("=I", 1000), 12, 50_000),
            qdisc(5, LEAF, b"netem", struct.pack("=6I", 999, 20, 0, 0, 0, 0), 3, 4_000),
        )
    )
    assert parse_queues(answer) == ([Queue(4, 12, 50_000, 1000), Queue(5, 3, 4_000, 20)], False)


def test_the_last_part_says_so_and_an_error_ends_an_answer() -> None:
    for kind in (2, 3):
        assert parse_queues(struct.pack("=IHHIIi", 20, kind, 2, 1, 0, 0)) == ([], True)
    assert len(REQUEST) == 36
    assert parse_queues(b"") == ([], False)
