"""Data: real bytes, different for each rank, and a comparison that sees every wrong one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoints.collectives.registry import collective
from experiments.data import Data, block_size, file_size
from experiments.errors import UserError

ALLGATHER = collective("mcast_allgather")
BROADCAST = collective("mcast_broadcast")
REDUCE_SCATTER = collective("ring_reduce_scatter")


def gathered(data: Data, ranks: int) -> np.ndarray:
    return np.concatenate([data.block(rank) for rank in range(ranks)])


def test_seeded_blocks_repeat_and_differ_by_rank_and_seed() -> None:
    data = Data(1000, seed=7)
    assert (data.block(3) == Data(1000, seed=7).block(3)).all()
    assert (data.block(3) != data.block(4)).any()
    assert (data.block(3) != Data(1000, seed=8).block(3)).any()


@given(st.binary(min_size=1, max_size=300), st.integers(1, 9))
def test_a_file_split_over_the_ranks_is_whole_and_padded_with_zeros(content: bytes, ranks: int) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.write_bytes(content)
        size = block_size(file_size(path), ranks)
        whole = gathered(Data(size, 0, path), ranks).tobytes()
    assert whole.rstrip(b"\0") == content.rstrip(b"\0")
    assert len(whole) == size * ranks < len(content) + ranks


def test_with_a_size_of_its_own_the_first_bytes_of_a_file_take_part(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(bytes(range(10)))
    assert gathered(Data(2, 0, path), 3).tobytes() == bytes(range(6))


@pytest.mark.parametrize("make", [None, b""])
def test_a_missing_or_empty_file_is_refused_by_name(tmp_path: Path, make: bytes | None) -> None:
    path = tmp_path / "input"
    if make is not None:
        path.write_bytes(make)
    with pytest.raises(UserError, match=str(path)):
        file_size(path)
    with pytest.raises(UserError, match=str(tmp_path)):
        file_size(tmp_path)


def test_what_was_sent_has_no_wrong_byte() -> None:
    data = Data(100, seed=1)
    assert data.wrong_bytes(ALLGATHER, 4, 1, gathered(data, 4)) == 0
    assert data.wrong_bytes(BROADCAST, 4, 1, data.block(0)) == 0


@given(st.sets(st.integers(0, 399), min_size=1, max_size=20))
def test_every_wrong_byte_counts_once(places: set[int]) -> None:
    data = Data(100, seed=1)
    received = gathered(data, 4)
    for place in places:
        received[place] ^= 0x40
    assert data.wrong_bytes(ALLGATHER, 4, 1, received) == len(places)


def test_missing_and_surplus_bytes_are_wrong() -> None:
    data = Data(100, seed=1)
    received = gathered(data, 4)
    assert data.wrong_bytes(ALLGATHER, 4, 1, received[:250]) == 150
    assert data.wrong_bytes(ALLGATHER, 4, 1, np.concatenate([received, received[:5]])) == 5


def test_in_a_broadcast_only_the_root_contributes() -> None:
    data = Data(100, seed=1)
    assert (data.contribution(BROADCAST, 4, 0) == data.block(0)).all()
    assert data.contribution(BROADCAST, 4, 1).size == 0
    assert data.contribution(ALLGATHER, 4, 1).size == 100


def test_in_a_reduction_every_rank_has_a_block_for_each_and_receives_the_sum_of_its_own() -> None:
    ranks, data = 3, Data(100, seed=1)
    given = np.stack([data.contribution(REDUCE_SCATTER, ranks, rank).view("<u4") for rank in range(ranks)])
    assert given.shape == (ranks, ranks * 25)
    assert len(np.unique(given)) == given.size, "no two blocks are alike"
    for rank in range(ranks):
        mine = given[:, rank * 25 : (rank + 1) * 25]
        total = np.array([sum(map(int, column)) % 2**32 for column in mine.T], "<u4").view(np.uint8)
        assert data.wrong_bytes(REDUCE_SCATTER, ranks, rank, total) == 0
        assert data.wrong_bytes(REDUCE_SCATTER, ranks, (rank + 1) % ranks, total) > 50
        total[7] ^= 1
        assert data.wrong_bytes(REDUCE_SCATTER, ranks, rank, total) == 1


def test_a_block_of_a_file_holds_whole_elements(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(bytes(range(100)))
    size = block_size(file_size(path), 9, REDUCE_SCATTER.granularity)
    assert size == 12
    data = Data(size, 0, path)
    given = b"".join(data.contribution(REDUCE_SCATTER, 3, rank).tobytes() for rank in range(3))
    assert given == bytes(range(100)) + bytes(8)


def test_making_blocks_imports_nothing() -> None:
    """Compiled modules that are imported while a run is on take a stop signal for a fault of theirs, and go on."""
    program = """
import sys
from experiments.data import Data
before = set(sys.modules)
Data(64, seed=1).block(0)
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
