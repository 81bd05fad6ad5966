"""Schedules as values: each can be carried out, brings every byte once, and loads ranks as its theory says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from endpoints.collectives import (
    binary_tree_broadcast,
    binomial_broadcast,
    chain_broadcast,
    linear_allgather,
    recursive_doubling_allgather,
    ring_allgather,
)
from endpoints.core.schedule import SEGMENT_BYTES, Transfer

ALLGATHERS = (ring_allgather, linear_allgather, recursive_doubling_allgather)
BROADCASTS = (binomial_broadcast, binary_tree_broadcast, chain_broadcast)
RANKS = [*range(1, 18), 31, 32, 33]


def rounds_of(transfers: list[Transfer], ranks: int, held: np.ndarray) -> list[list[Transfer]]:
    """What can be sent at the same time, with at most one transfer out of and into each rank; every byte comes once.

    ``held`` of shape (ranks, bytes) says which bytes each rank has; each rank sends in its order.
    """
    left = list(transfers)
    rounds = []
    while left:
        ready, senders, receivers = [], set(), set()
        for transfer in left:
            first_of_its_sender = transfer.src not in senders
            senders.add(transfer.src)
            here = held[transfer.src, transfer.offset : transfer.stop].all()
            if first_of_its_sender and here and transfer.dst not in receivers:
                receivers.add(transfer.dst)
                ready.append(transfer)
        assert ready, f"nobody of {ranks} can send any of {left}"
        for transfer in ready:
            assert not held[transfer.dst, transfer.offset : transfer.stop].any(), f"{transfer} brings bytes twice"
        for transfer in ready:
            held[transfer.dst, transfer.offset : transfer.stop] = True
        rounds.append(ready)
        left = [transfer for transfer in left if transfer not in ready]
    return rounds


def allgather_rounds(algorithm, ranks: int, size: int) -> list[list[Transfer]]:
    held = np.repeat(np.eye(ranks, dtype=bool), size, axis=1)
    rounds = rounds_of(list(algorithm.transfers(ranks, size)), ranks, held)
    assert held.all()
    return rounds


def broadcast_rounds(algorithm, ranks: int, size: int) -> list[list[Transfer]]:
    held = np.zeros((ranks, size), bool)
    held[0] = True
    rounds = rounds_of(list(algorithm.transfers(ranks, size)), ranks, held)
    assert held.all()
    return rounds


def sent_bytes(transfers, ranks: int) -> list[int]:
    sent: Counter[int] = Counter()
    for transfer in transfers:
        sent[transfer.src] += transfer.size
    return [sent[rank] for rank in range(ranks)]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", ALLGATHERS, ids=lambda module: module.__name__.split(".")[-1])
def test_allgather_brings_every_byte_to_every_rank_once(algorithm, ranks: int) -> None:
    allgather_rounds(algorithm, ranks, 3)


@pytest.mark.parametrize("size", [1, SEGMENT_BYTES, 2 * SEGMENT_BYTES + 5])
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", BROADCASTS, ids=lambda module: module.__name__.split(".")[-1])
def test_broadcast_brings_every_byte_to_every_rank_once(algorithm, ranks: int, size: int) -> None:
    broadcast_rounds(algorithm, ranks, size)


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_sends_all_blocks_but_one_out_of_every_rank_and_only_to_the_right(ranks: int) -> None:
    transfers = list(ring_allgather.transfers(ranks, 10))
    assert sent_bytes(transfers, ranks) == [10 * (ranks - 1)] * ranks
    assert all(transfer.dst == (transfer.src + 1) % ranks for transfer in transfers)
    assert len(allgather_rounds(ring_allgather, ranks, 2)) == ranks - 1


@pytest.mark.parametrize("ranks", RANKS)
def test_linear_sends_to_and_hears_from_one_rank_at_a_time(ranks: int) -> None:
    assert [len(round_) for round_ in allgather_rounds(linear_allgather, ranks, 1)] == [ranks] * (ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
def test_recursive_doubling_takes_log2_steps_and_sends_no_byte_too_many(ranks: int) -> None:
    transfers = list(recursive_doubling_allgather.transfers(ranks, 6))
    assert sent_bytes(transfers, ranks) == [6 * (ranks - 1)] * ranks
    partners = Counter(src for src, _ in {(transfer.src, transfer.dst) for transfer in transfers})
    assert set(partners.values()) <= {(ranks - 1).bit_length()}


@pytest.mark.parametrize("ranks", RANKS)
def test_binomial_takes_log2_rounds_for_the_whole_message(ranks: int) -> None:
    assert len(broadcast_rounds(binomial_broadcast, ranks, 4)) == (ranks - 1).bit_length()


@pytest.mark.parametrize("ranks", [2, 3, 7, 15, 16])
def test_pipelines_send_every_byte_once_per_child_and_keep_the_root_busy(ranks: int) -> None:
    size = 20 * SEGMENT_BYTES
    chain = list(chain_broadcast.transfers(ranks, size))
    assert sent_bytes(chain, ranks) == [size] * (ranks - 1) + [0]
    assert len(broadcast_rounds(chain_broadcast, ranks, size)) == 20 + ranks - 2
    tree = list(binary_tree_broadcast.transfers(ranks, size))
    assert max(sent_bytes(tree, ranks)) == size * min(2, ranks - 1)
    assert len(broadcast_rounds(binary_tree_broadcast, ranks, size)) <= 2 * (20 + ranks.bit_length())
