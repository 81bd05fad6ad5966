"""The slow path of one rank alone: what it asks for, what it READs at a time, and whom it blames."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core.blocks import BlockLayout
from endpoints.core.fast_path import Placement
from endpoints.core.messages import Kind, Ranges
from endpoints.core.slow_path import LAST_ROUNDS, Exhausted, Recovery

RANKS, CHUNKS, MTU = 4, 100, 64
WINDOW, PIECE, PATIENCE = 32, 16, 1000


class Recorder:
    """The wire: questions as (supplier, ranges), READs as (supplier, first, stop)."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Ranges]] = []
        self.reads: list[tuple[int, int, int]] = []

    def send_ranges(self, peer: int, kind: Kind, ranges: Ranges) -> None:
        assert kind is Kind.FETCH
        self.asked.append((peer, ranges))

    def read(self, peer: int, first: int, stop: int) -> None:
        self.reads.append((peer, first, stop))


def rank_three() -> tuple[Recovery, Placement, Recorder]:
    """Rank 3 of four, which has its own block alone."""
    layout = BlockLayout(RANKS, CHUNKS * MTU, MTU)
    blocks = np.zeros((RANKS, layout.block_bytes), np.uint8)
    roots = tuple(range(RANKS))
    placement = Placement(layout=layout, roots=roots, blocks=blocks, prefix=0, chunk_bits=24)
    placement.place_block(3, np.ones(CHUNKS * MTU, np.uint8))
    wire = Recorder()
    recovery = Recovery(rank=3, size=RANKS, roots=roots, placement=placement, wire=wire, piece=PIECE, window=WINDOW)
    return recovery, placement, wire


def bring(placement: Placement, reads: list[tuple[int, int, int]]) -> None:
    """The data of these READs."""
    for _, first, stop in reads:
        for chunk in range(first, stop):
            assert placement.place_one(chunk, np.zeros(MTU, np.uint8))


def test_reads_keep_within_the_window_whoever_supplies() -> None:
    recovery, placement, wire = rank_three()
    recovery.want_all(0)
    recovery.ready(2, [(0, CHUNKS)], 1)
    recovery.ready(1, [(CHUNKS, 2 * CHUNKS)], 2)
    assert wire.reads == [(2, 0, 16), (2, 16, 32)]
    bring(placement, wire.reads[:1])
    recovery.read_on()
    assert wire.reads[2:] == [(2, 32, 48)]


def test_everything_promised_is_read_once() -> None:
    recovery, placement, wire = rank_three()
    recovery.want_all(0)
    for peer in (2, 1):
        recovery.ready(peer, [(0, 3 * CHUNKS)], 1)
    at = 0
    while at < len(wire.reads):
        bring(placement, wire.reads[at : at + 1])
        at += 1
        recovery.read_on()
    assert placement.complete


def test_what_the_multicast_brings_while_it_waits_is_not_read() -> None:
    recovery, placement, wire = rank_three()
    recovery.want_all(0)
    recovery.ready(2, [(0, CHUNKS)], 1)
    late = [(2, 40, CHUNKS)]
    bring(placement, wire.reads)
    bring(placement, late)
    recovery.read_on()
    assert wire.reads[2:] == [(2, 32, 40)]


def test_a_silent_supplier_is_replaced_by_the_owner_and_its_share_of_the_window_is_free() -> None:
    recovery, _, wire = rank_three()
    recovery.want_all(0)
    recovery.ready(2, [(0, CHUNKS)], 1)
    recovery.impatient(1 + PATIENCE, PATIENCE, heard_at=PATIENCE)
    # Rank 2 owns the last block, so that the next to be asked for that is rank 1.
    assert wire.asked[1:] == [(0, [(0, CHUNKS)]), (1, [(CHUNKS, 2 * CHUNKS), (2 * CHUNKS, 3 * CHUNKS)])]
    recovery.ready(0, [(0, CHUNKS)], 2 + PATIENCE)
    assert wire.reads[2:] == [(0, 0, 16), (0, 16, 32)]


def test_while_nobody_is_heard_nobody_is_replaced() -> None:
    recovery, _, wire = rank_three()
    recovery.want_all(0)
    recovery.impatient(PATIENCE, PATIENCE, heard_at=0)
    assert len(wire.asked) == 1
    assert recovery.next_impatience(PATIENCE) == 2 * PATIENCE
    recovery.impatient(2 * PATIENCE, PATIENCE, heard_at=PATIENCE + 1)
    assert len(wire.asked) == 3, "another is heard, and the supplier is not"


def test_a_lost_owners_block_is_asked_of_all_others_at_once_and_given_up_when_none_of_them_has_it() -> None:
    recovery, _, wire = rank_three()
    recovery.want_all(0)
    wire.asked.clear()
    recovery.lose(0, 1)
    assert {peer for peer, ranges in wire.asked if (0, CHUNKS) in ranges} == {1, 2}
    now = 1
    for _ in range(LAST_ROUNDS - 1):
        now += PATIENCE
        recovery.impatient(now, PATIENCE, heard_at=now)
    with pytest.raises(Exhausted) as given_up:
        recovery.impatient(now + PATIENCE, PATIENCE, heard_at=now + PATIENCE)
    assert given_up.value.owner == 0


def test_while_anything_is_supplied_a_lost_owners_block_is_not_given_up() -> None:
    recovery, _, _ = rank_three()
    recovery.want_all(0)
    recovery.lose(0, 1)
    now = 1
    for _ in range(3 * LAST_ROUNDS):
        now += PATIENCE
        recovery.impatient(now, PATIENCE, heard_at=now)
        recovery.arrived(1, now)
