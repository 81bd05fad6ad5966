"""What work requests say, and what a NIC makes of them: entries, rows of memory, stripes, checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from endpoints.collectives.registry import collectives
from endpoints.core.packets import U8
from endpoints.nic import budget
from endpoints.nic.entries import Completion, Status, Work
from endpoints.nic.jobs import Bad, check
from endpoints.nic.rows import Rows
from endpoints.nic.stripes import stripes
from experiments.communicators import communicator
from topo.registry import parse_topology

WORD = st.integers(0, (1 << 64) - 1)
INDEX = st.integers(0, (1 << 32) - 1)
ROWS = st.builds(Rows, WORD, WORD, WORD, WORD, WORD)
COMM = communicator(parse_topology("single,hosts=3"), mtu=256, rate_bps=50_000_000)
NIC = budget.Nic()
ALGORITHMS = tuple(collectives().values())
ALLGATHER = [algorithm.name for algorithm in ALGORITHMS].index("mcast_allgather")
RING = [algorithm.name for algorithm in ALGORITHMS].index("ring_allgather")
BROADCAST = [algorithm.name for algorithm in ALGORITHMS].index("mcast_broadcast")
MEMORY = {0: np.zeros(0, np.uint8), 1: np.arange(250, dtype=np.uint8), 2: np.zeros(1000, np.uint8)}


@given(st.builds(Work, WORD, INDEX, ROWS, ROWS, WORD, INDEX))
def test_a_work_request_is_read_as_it_was_written(work: Work) -> None:
    assert Work.unpack(work.pack()) == work


@given(st.builds(Completion, WORD, st.sampled_from(Status), st.text(max_size=50), st.none() | st.integers(0, 1000)))
@example(Completion(1, Status.SUCCESS, "é" * 200, 3))
def test_a_completion_is_read_as_it_was_written_but_for_the_end_of_a_long_reason(completion: Completion) -> None:
    found = Completion.unpack(completion.pack())
    assert (found.number, found.status, found.suspect) == (completion.number, completion.status, completion.suspect)
    reason = completion.reason.rstrip("\0")
    assert found.reason == reason or (len(reason.encode()) > 232 and reason.startswith(found.reason))


@given(st.binary(min_size=Completion.ENTRY.size, max_size=Completion.ENTRY.size))
def test_any_bytes_are_some_completion(noise: bytes) -> None:
    assert Completion.unpack(noise).status in Status


@given(st.integers(0, 100_000), st.sampled_from([256, 4096]), st.integers(1, 9))
def test_stripes_are_whole_chunks_of_about_the_same_number_and_all_of_the_block(
    size: int, mtu: int, workers: int
) -> None:
    shares = stripes(size, mtu, workers)
    assert [start for start, _ in shares[1:]] == [stop for _, stop in shares[:-1]]
    assert (len(shares), shares[0][0], shares[-1][1]) == (workers, 0, size)
    assert all(start % mtu == 0 for start, stop in shares if stop > start)
    chunks = [-(-(stop - start) // mtu) for start, stop in shares]
    assert max(chunks) - min(chunks) <= 1


@given(ROWS, st.integers(0, 300))
def test_rows_show_bytes_of_the_memory_or_nothing(rows: Rows, size: int) -> None:
    memory = np.zeros(size, np.uint8)
    try:
        view = rows.view(memory)
    except ValueError:
        return
    assert view.size == rows.count * rows.length
    assert view.size == 0 or np.shares_memory(view, memory)


@given(st.integers(1, 5), st.integers(0, 40), st.data())
def test_a_part_of_every_block_is_received_in_its_place(count: int, length: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, length))
    stop = data.draw(st.integers(start, length))
    offset = data.draw(st.integers(0, 9))
    memory = np.zeros(offset + count * length + 3, np.uint8)
    view = Rows.blocks(7, offset, count * length, count).part(start, stop).view(memory)
    view[...] = 1
    expected = np.zeros_like(memory)
    expected[offset : offset + count * length].reshape(count, length)[:, start:stop] = 1
    assert memory.tolist() == expected.tolist()


def whole(key: int, size: int, blocks: int = 1) -> Rows:
    return Rows.blocks(key, 0, size, blocks)


def test_a_good_work_request_reads_and_writes_registered_memory_itself() -> None:
    work = Work(1, ALLGATHER, whole(1, 250), whole(2, 750, blocks=3))
    job = check(work, ALGORITHMS, MEMORY, COMM, 0, NIC)
    [only] = job.rounds
    assert (job.algorithm.name, only.data.size, only.buffer.size) == ("mcast_allgather", 250, 750)
    assert np.shares_memory(only.data, MEMORY[1])
    assert np.shares_memory(only.buffer, MEMORY[2])


def test_a_rank_that_gives_nothing_needs_no_memory_for_it() -> None:
    work = Work(1, BROADCAST, whole(0, 0), whole(2, 250))
    assert check(work, ALGORITHMS, MEMORY, COMM, 1, NIC).rounds[0].data.size == 0
    with pytest.raises(Bad, match="mcast_broadcast takes 1 blocks of 250, not 1 of 0 bytes"):
        check(work, ALGORITHMS, MEMORY, COMM, 0, NIC)


@pytest.mark.parametrize(
    ("work", "status", "reason"),
    [
        (Work(1, 99, whole(1, 250), whole(2, 750, 3)), Status.LOCAL_OPERATION_ERROR, "algorithm 99: there are"),
        (Work(1, 0, whole(1, 250), whole(2, 750, 3), 0, 9), Status.LOCAL_OPERATION_ERROR, "element 9: there are 2"),
        (Work(1, ALLGATHER, whole(1, 250), whole(9, 750, 3)), Status.LOCAL_PROTECTION_ERROR, "9 is not registered"),
        (Work(1, ALLGATHER, whole(1, 251), whole(2, 753, 3)), Status.LOCAL_PROTECTION_ERROR, "is not in 250 bytes"),
        (Work(1, ALLGATHER, whole(1, 250), whole(2, 500, 2)), Status.LOCAL_LENGTH_ERROR, "receives 3 blocks, not 2"),
        (
            Work(1, ALLGATHER, whole(1, 249), whole(2, 750, 3)),
            Status.LOCAL_LENGTH_ERROR,
            "1 blocks of 250, not 1 of 249",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_status(work: Work, status: Status, reason: str) -> None:
    with pytest.raises(Bad, match=reason) as refused:
        check(work, ALGORITHMS, MEMORY, COMM, 0, NIC)
    assert refused.value.status is status


@pytest.mark.parametrize("outstanding", [1, 2, 4])
def test_what_does_not_fit_is_cut_into_rounds_each_a_slice_of_every_block(outstanding: int) -> None:
    """In chunks of 256 bytes; there is memory for the state of nine words of chunks."""
    size = 256 * 64 * 4 + 7
    memory = {1: np.arange(size, dtype=np.uint32).astype(np.uint8), 2: np.zeros(3 * size, np.uint8)}
    staging = budget.plan(budget.Collective(3, 3, 0, 256), budget.Nic(1 << 30, staging=64)).bytes
    bits = budget.Nic().bits_per_chunk
    nic = budget.Nic(staging + 8 * bits * 9, staging=64, outstanding=outstanding)
    work = Work(1, ALLGATHER, whole(1, size), whole(2, 3 * size, 3))
    job = check(work, ALGORITHMS, memory, COMM, 0, nic)
    assert len(job.rounds) > 1
    assert np.concatenate([part.data for part in job.rounds]).tolist() == memory[1].tolist()
    for number, part in enumerate(job.rounds, 1):
        assert part.buffer.shape == (3, part.data.size)
        part.buffer[...] = number
        chunks = 3 * -(-part.data.size // 256)
        assert outstanding * budget.state_bytes(chunks, bits) + staging <= nic.memory
    assert np.count_nonzero(memory[2]) == 3 * size
    point_to_point = check(replace(work, algorithm=RING), ALGORITHMS, memory, COMM, 0, nic)
    assert len(point_to_point.rounds) == 1


def test_what_cannot_be_cut_small_enough_is_refused_with_numbers() -> None:
    work = Work(1, ALLGATHER, whole(1, 250), whole(2, 750, blocks=3))
    with pytest.raises(Bad, match=r"1000 bytes of memory, and \d+ are needed") as refused:
        check(work, ALGORITHMS, MEMORY, COMM, 0, budget.Nic(1000))
    assert refused.value.status is Status.LOCAL_LENGTH_ERROR


@given(st.builds(Work, WORD, st.integers(0, 20), ROWS, ROWS, WORD, st.integers(0, 3)))
def test_any_work_request_is_checked_without_harm(work: Work) -> None:
    memory: dict[int, U8] = dict.fromkeys((work.data.key, work.buffer.key), np.zeros(100, np.uint8))
    try:
        job = check(work, ALGORITHMS, memory, COMM, 0, NIC)
    except Bad:
        return
    assert all(part.buffer.size <= 100 for part in job.rounds)
