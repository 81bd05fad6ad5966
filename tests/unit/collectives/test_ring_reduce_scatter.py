"""Reduce-Scatter round the ring: what is added, in which order, and that nothing is added twice or spoilt."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from endpoints.collectives.elements import Element
from endpoints.collectives.registry import Collective
from endpoints.collectives.ring_reduce_scatter import COLLECTIVE, RingReduceScatter, transfers
from endpoints.core.endpoint import Endpoint
from endpoints.core.errors import ProtocolError
from endpoints.core.packets import U8
from experiments.communicators import communicator
from tests.sim.scenarios import LIMIT_NS, Case, make_world
from topo.registry import parse_topology

LOSSY = Case(ranks=5, size=0, mtu=256, seed=3, loss=0.1, reorder=0.1, duplicate=0.1, corrupt=0.05)


def given(ranks: int, elements: int) -> np.ndarray:
    """Floating-point numbers of shape (rank, block, elements), of which each sum depends on the order."""
    rng = np.random.default_rng(1)
    return (rng.standard_normal((ranks, ranks, elements)) * 10.0 ** rng.integers(-3, 4, elements)).astype("<f4")


def received(collective: Collective, case: Case, data: np.ndarray) -> list[U8]:
    world = make_world(case)
    contributed = [np.frombuffer(part.tobytes(), np.uint8) for part in data]
    outcome = world.run(collective, contributed, data[0, 0].nbytes, LIMIT_NS)
    assert outcome.completed == list(range(case.ranks))
    return outcome.buffers


def sums(data: np.ndarray, first: int) -> list[bytes]:
    """By rank, of what all have for it: beginning with the rank that is ``first`` further on, in rank order."""
    ranks = len(data)
    found = []
    for block in range(ranks):
        total = data[(block + first) % ranks, block]
        for step in range(1, ranks):
            total = total + data[(block + first + step) % ranks, block]
        found.append(total.tobytes())
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_every_rank_adds_its_own_to_each_block_once_and_a_block_ends_at_home(ranks: int) -> None:
    added = {rank: {block: {rank} for block in range(ranks)} for rank in range(ranks)}
    for transfer in transfers(ranks, 4):
        block = transfer.offset // 4
        assert (transfer.size, transfer.dst) == (4, (transfer.src + 1) % ranks)
        assert not added[transfer.src][block] & added[transfer.dst][block]
        added[transfer.dst][block] |= added[transfer.src][block]
    assert [added[rank][rank] for rank in range(ranks)] == [set(range(ranks))] * ranks


def test_floating_point_numbers_are_added_in_the_order_of_the_ring_whatever_is_lost() -> None:
    data = given(LOSSY.ranks, 700)
    found = [buffer.tobytes() for buffer in received(COLLECTIVE.adding(Element.FLOAT32), LOSSY, data)]
    assert found == sums(data, first=1)
    assert found != sums(data, first=2), "another order gives other bits, so that this test can fail"


def test_what_is_written_once_more_after_it_was_added_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    take = RingReduceScatter._take
    written = []

    def and_again(self: RingReduceScatter, offset: int, size: int) -> None:
        take(self, offset, size)
        exposed = self.remote_view(offset, size)
        assert exposed is not None
        exposed[:] = 0xEE
        written.append((self._s.rank, offset))

    monkeypatch.setattr(RingReduceScatter, "_take", and_again)
    data = given(LOSSY.ranks, 700).view("<u4")
    assert [buffer.tobytes() for buffer in received(COLLECTIVE, LOSSY, data)] == sums(data, first=1)
    assert len(written) == len(set(written)) >= LOSSY.ranks * (LOSSY.ranks - 1)


def test_what_a_rank_gives_stays_as_it_is() -> None:
    data = given(3, 100).view("<u4")
    world = make_world(Case(ranks=3, size=0))
    contributed = [np.frombuffer(part.tobytes(), np.uint8) for part in data]  # which cannot be written
    assert world.run(COLLECTIVE, contributed, 400, LIMIT_NS).completed == [0, 1, 2]
    assert [part.tobytes() for part in contributed] == [part.tobytes() for part in data]


@pytest.mark.parametrize(("size", "given_bytes"), [(6, 18), (8, 16), (8, 8)])
def test_what_is_no_block_of_elements_for_every_rank_is_refused(size: int, given_bytes: int) -> None:
    endpoint = Endpoint(communicator(parse_topology("single,hosts=3"), mtu=256, rate_bps=10**9), 0)
    with pytest.raises(ProtocolError, match="give 3 blocks of elements of 4 bytes"):
        COLLECTIVE.make(endpoint, 1, np.zeros(given_bytes, np.uint8), np.zeros(size, np.uint8))


def test_elements_are_little_endian_wrap_and_may_lie_anywhere() -> None:
    memory = np.frombuffer(b"\0" + bytes.fromhex("ffffffff 01000000"), np.uint8)
    total = np.zeros(4, np.uint8)
    Element.UINT32.add(memory[1:5], memory[5:], total)
    assert total.tobytes() == bytes(4)
    Element.UINT32.add(memory[5:], memory[5:], total)
    assert total.tobytes() == bytes([2, 0, 0, 0])


def test_infinity_is_a_result_like_others() -> None:
    large = np.full(1, np.finfo("<f4").max).view(np.uint8)
    total = np.zeros(4, np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Element.FLOAT32.add(large, large, total)
    assert np.isinf(total.view("<f4")[0])
