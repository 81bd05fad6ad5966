"""A communicator that has lost ranks: those that are left, numbered densely in order, and with new queue pairs."""

from __future__ import annotations

import pytest

from endpoints.core.communicator import EPOCHS, MULTICAST_QPN, Communicator, GroupAddress, Peer

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
