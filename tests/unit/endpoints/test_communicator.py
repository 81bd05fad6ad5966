"""A communicator that has lost ranks, and the shares of workers: who has what, and queue pairs of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from endpoints.core.communicator import (
    EPOCHS,
    MULTICAST_QPN,
    RC_QPN_BASE,
    UD_QPN,
    WORKER_SHIFT,
    WORKERS,
    Communicator,
    GroupAddress,
    Peer,
)

SIZE = 5
COMM = Communicator(
    peers=tuple(Peer(rank, f"h{rank + 1}", bytes([2, 0, 0, 0, 0, rank]), 0x0A000001 + rank) for rank in range(SIZE)),
    groups=(GroupAddress(0xEFC00001, b"\x01\x00\x5e\x40\x00\x01"),),
    mtu=1024,
    rate_bps=50_000_000,
    op_bits=9,
)


def queue_pairs(comm: Communicator) -> set[int]:
    return {base + peer.rank for base in (comm.rc_qpn, comm.bulk_qpn) for peer in comm.peers}


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        ({0}, ["h2", "h3", "h4", "h5"]),
        ({4}, ["h1", "h2", "h3", "h4"]),
        ({1, 3}, ["h1", "h3", "h5"]),
        ({0, 1, 2, 3}, ["h5"]),
    ],
)
def test_who_is_left_keeps_its_address_and_its_place_in_the_order(lost: set[int], left: list[str]) -> None:
    shrunk = COMM.shrink(lost)
    assert [(peer.rank, peer.name) for peer in shrunk.peers] == list(enumerate(left))
    address = {peer.name: (peer.mac, peer.ip) for peer in COMM.peers}
    assert all((peer.mac, peer.ip) == address[peer.name] for peer in shrunk.peers)
    assert (shrunk.groups, shrunk.mtu, shrunk.rate_bps, shrunk.op_bits) == (
        *(COMM.groups, COMM.mtu, COMM.rate_bps),
        COMM.op_bits,
    )


def test_no_queue_pair_has_a_number_that_it_had_before_while_numbers_last() -> None:
    seen: set[int] = set()
    comm = COMM
    for _ in range(EPOCHS):
        numbers = queue_pairs(comm)
        assert len(numbers) == 2 * SIZE
        assert not numbers & seen
        assert max(numbers) < MULTICAST_QPN
        seen |= numbers
        comm = comm.shrink(())
    assert queue_pairs(comm) == queue_pairs(COMM)


def test_losing_nobody_renews_the_communicator() -> None:
    assert COMM.shrink(()).peers == COMM.peers
    assert COMM.shrink(()) != COMM


def test_strangers_cannot_be_lost_and_somebody_must_be_left() -> None:
    with pytest.raises(ValueError, match="rank 5: this communicator has 0 to 4"):
        COMM.shrink({5})
    with pytest.raises(ValueError, match="all 5 ranks are lost"):
        COMM.shrink(range(5))


def with_trees(count: int) -> Communicator:
    trees = tuple(GroupAddress(0xEFC00001 + tree, bytes([1, 0, 0x5E, 0x40, 0, 1 + tree])) for tree in range(count))
    return replace(COMM, groups=trees)


def test_workers_have_the_same_ranks_every_tree_once_and_parts_of_the_rate() -> None:
    whole = with_trees(5)
    shares = [whole.share(worker, 3) for worker in range(3)]
    assert [[whole.groups.index(group) for group in share.groups] for share in shares] == [[0, 3], [1, 4], [2]]
    assert [(share.worker, share.workers, share.rate_bps) for share in shares] == [
        (worker, 3, whole.rate_bps // 3) for worker in range(3)
    ]
    assert {(share.peers, share.mtu, share.op_bits, share.epoch) for share in shares} == {
        (whole.peers, whole.mtu, whole.op_bits, whole.epoch)
    }


def test_the_only_worker_has_the_whole_communicator() -> None:
    assert COMM.share(0, 1) == COMM


def test_no_queue_pair_is_two_workers_or_of_two_epochs_kinds_or_peers() -> None:
    most = 0x10000 - RC_QPN_BASE - 1
    shares = [with_trees(WORKERS).share(worker, WORKERS) for worker in range(WORKERS)]
    seen: set[int] = set()
    ends = 0
    for worker, comm in enumerate(shares):
        assert comm.ud_qpn not in seen
        seen.add(comm.ud_qpn)
        for epoch in range(EPOCHS):
            share = replace(comm, epoch=epoch)
            numbers = queue_pairs(share) | {share.rc_qpn + most, share.bulk_qpn + 0xFFFF}
            assert not numbers & seen
            assert {number >> WORKER_SHIFT for number in numbers} == {worker}
            seen |= numbers
            ends += len(numbers)
    assert len(seen) == ends + WORKERS
    assert MULTICAST_QPN >> WORKER_SHIFT == WORKERS


def test_what_is_left_of_a_share_is_the_same_workers() -> None:
    share = with_trees(4).share(1, 2)
    shrunk = share.shrink({3})
    assert (shrunk.worker, shrunk.workers, shrunk.groups, shrunk.rate_bps) == (1, 2, share.groups, share.rate_bps)
    assert shrunk == with_trees(4).shrink({3}).share(1, 2)


@pytest.mark.parametrize(
    ("worker", "workers", "message"),
    [
        (0, 3, "3 workers, 2 multicast trees: each worker needs one of its own"),
        (2, 2, "worker 2 of 2"),
        (-1, 2, "worker -1 of 2"),
        (0, 0, "worker 0 of 0"),
    ],
)
def test_impossible_shares_are_refused(worker: int, workers: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_trees(2).share(worker, workers)


def test_more_workers_than_numbers_are_refused_and_no_share_is_shared() -> None:
    with pytest.raises(ValueError, match=f"worker 0 of 8: numbered from 0, {WORKERS} at most"):
        with_trees(8).share(0, 8)
    with pytest.raises(ValueError, match="share of worker 1 of 2: it cannot be shared again"):
        with_trees(8).share(1, 2).share(0, 2)


def test_one_workers_numbers_are_those_without_workers() -> None:
    assert (COMM.ud_qpn, COMM.rc_qpn, COMM.bulk_qpn) == (UD_QPN, RC_QPN_BASE, 0x010000)
