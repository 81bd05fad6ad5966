"""Several operations under way on the same endpoints: right bytes for each, and a fair share of the link."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpoints.collectives.registry import collective, collectives
from endpoints.core.events import Completed
from experiments.sim.world import Outcome, Work, World
from tests.sim.scenarios import LIMIT_NS, Case, contributions, fitting, make_world, reference

RANKS = 5


def work(algorithm: str, size: int, seed: int, ranks: int = RANKS) -> Work:
    entry = collective(algorithm)
    rng = np.random.default_rng([seed, size])
    size = fitting(size, algorithm)
    return Work(
        entry,
        contributions(entry, ranks, size, rng),
        [np.zeros(entry.buffer_bytes(ranks, size), np.uint8) for _ in range(ranks)],
    )


def together(world: World, *works: Work) -> list[Outcome]:
    """All of them at a time, each verified."""
    outcomes = world.run_together(works, LIMIT_NS)
    for it, outcome in zip(works, outcomes, strict=True):
        assert outcome.completed == list(range(world.comm.size)), outcome.failures
        check(it)
    return outcomes


def check(it: Work) -> None:
    for rank, buffer in enumerate(it.buffers):
        assert np.array_equal(buffer, reference(it.collective, it.data, rank))


def begin(world: World, it: Work, rank: int, op: int) -> None:
    host = world.hosts[rank]
    host.station.endpoint.prepare(partial(it.collective.make, data=it.data[rank], buffer=it.buffers[rank]), op)
    host.station.endpoint.begin(world.clock.now, op)
    host.pump()


def finish(world: World, operations: int) -> None:
    """Until so many have ended on every rank, or nothing happens any more."""
    while not all(len(host.ends) == operations for host in world.hosts) and world.clock.step():
        pass


NAMES = st.sampled_from(sorted(collectives()))
SIZES = st.sampled_from([0, 1, 255, 256, 257, 3000, 9001])


@settings(deadline=None, max_examples=60)
@given(
    kinds=st.lists(st.tuples(NAMES, SIZES), min_size=2, max_size=4),
    seed=st.integers(0, 99),
    loss=st.sampled_from([0.0, 0.05]),
    first_op=st.sampled_from([1, 254, 2**28 - 2]),
    trees=st.sampled_from([1, 2]),
)
def test_any_operations_at_a_time_are_right(
    kinds: list[tuple[str, int]], seed: int, loss: float, first_op: int, trees: int
) -> None:
    world = make_world(Case(ranks=RANKS, size=0, seed=seed, loss=loss, reorder=loss, first_op=first_op, trees=trees))
    together(world, *(work(name, size, seed + number) for number, (name, size) in enumerate(kinds)))


@pytest.mark.parametrize("algorithm", ["mcast_allgather", "mcast_broadcast"])
@pytest.mark.parametrize("order", ["small first", "large first"])
def test_a_small_operation_is_not_held_up_and_a_large_one_not_starved(algorithm: str, order: str) -> None:
    def world() -> World:
        return make_world(Case(ranks=8, size=0, mtu=1024))

    small, large = 100_000, 1_000_000
    alone = {size: together(world(), work(algorithm, size, 1, 8))[0].seconds for size in (small, large)}
    sizes = [small, large] if order == "small first" else [large, small]
    both = together(world(), *(work(algorithm, size, number, 8) for number, size in enumerate(sizes)))
    seconds = dict(zip(sizes, (outcome.seconds for outcome in both), strict=True))
    assert seconds[small] < 1.6 * alone[small]
    assert seconds[large] < 1.1 * (alone[small] + alone[large])


@pytest.mark.parametrize("after", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_small_operation_among_few_ranks_does_not_wait_behind_what_a_large_one_has_sent_ahead(
    ranks: int, after: float
) -> None:
    """Each of its messages would, and among few ranks that lasts longer than all that it brings."""
    small, large = (work("mcast_allgather", chunks * 1024, chunks, ranks) for chunks in (32, 256))
    alone, long_alone = (
        together(make_world(Case(ranks=ranks, size=0, mtu=1024)), it)[0].seconds for it in (small, large)
    )
    world = make_world(Case(ranks=ranks, size=0, mtu=1024))
    begun = {7: 0, 8: int(after * long_alone * 1e9)}
    for op, it in ((7, large), (8, small)):
        for buffer in it.buffers:
            buffer[:] = 0
        for rank in range(ranks):
            world.clock.at(begun[op], partial(begin, world, it, rank, op))
    finish(world, 2)
    seconds = {op: max(host.ends[op].now for host in world.hosts) / 1e9 - begun[op] / 1e9 for op in begun}
    assert seconds[8] < 2 * alone
    assert seconds[7] < 1.05 * (alone + long_alone)
    for it in (small, large):
        check(it)


def test_ranks_may_begin_with_them_in_different_orders() -> None:
    world = make_world(Case(ranks=RANKS, size=0))
    works = [work("mcast_allgather", 2000, 1), work("ring_allgather", 3000, 2)]
    for rank in range(RANKS):
        numbered = list(zip((7, 8), works, strict=True))
        for op, it in numbered if rank % 2 else reversed(numbered):
            begin(world, it, rank, op)
    finish(world, 2)
    for it in works:
        check(it)


def test_who_dies_ends_all_of_them() -> None:
    world = make_world(Case(ranks=RANKS, size=0, deaths=((2, 8),)))
    works = [work("mcast_allgather", 50_000, 1), work("ring_allgather", 50_000, 2)]
    for outcome in world.run_together(works, LIMIT_NS):
        assert {failure.suspect for failure in outcome.failures.values()} == {2}
        assert len(outcome.failures) + len(outcome.completed) == RANKS - 1


def test_operations_whose_numbers_look_alike_in_a_chunk_never_share_chunks() -> None:
    """A long Broadcast, 300 short ones beside it: chunks carry 8 bits of a number, so that 257 looks like 1."""
    world = make_world(Case(ranks=3, size=400_000))
    sizes = (400_000, *[300] * 255, 400_000, *[300] * 44)
    works = [work("mcast_broadcast", size, seed, ranks=3) for seed, size in enumerate(sizes)]
    for op, it in enumerate(works, 1):
        for rank in range(3):
            begin(world, it, rank, op)
    finish(world, len(works))
    for host in world.hosts:
        assert all(isinstance(end, Completed) for end in host.ends.values())
        assert len(host.ends) == len(works)
    for it in works:
        check(it)
    first, alias = ([host.ends[op] for host in world.hosts] for op in (1, 257))
    assert max(end.now for end in first) < min(end.now for end in alias), "one after the other"
