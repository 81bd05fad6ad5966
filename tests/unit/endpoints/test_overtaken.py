"""What tells a lost chunk from a late one: two looks at the bitmap."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core.blocks import BlockLayout
from endpoints.core.fast_path import Placement
from endpoints.core.slow_path import Overtaken

BLOCKS, PER_BLOCK, MTU = 3, 10, 256


@pytest.fixture
def placement() -> Placement:
    layout = BlockLayout(BLOCKS, PER_BLOCK * MTU, MTU)
    blocks = np.zeros((BLOCKS, PER_BLOCK * MTU), np.uint8)
    return Placement(layout=layout, roots=(0, 1, 2), blocks=blocks, prefix=0, chunk_bits=20)


def bring(placement: Placement, *chunks: int) -> None:
    placement.bitmap.mark(np.array(chunks, np.int64))


def lost(overtaken: Overtaken) -> list[int]:
    found: list[int] = np.flatnonzero(overtaken.look()).tolist()
    return found


def test_nothing_is_lost_at_the_first_look(placement: Placement) -> None:
    bring(placement, 0, 5, 19)
    assert lost(Overtaken(placement)) == []


def test_what_was_overtaken_at_one_look_and_is_missing_at_the_next_is_lost(placement: Placement) -> None:
    overtaken = Overtaken(placement)
    bring(placement, 0, 3)
    overtaken.look()
    assert lost(overtaken) == [1, 2]


def test_what_comes_between_two_looks_was_merely_late(placement: Placement) -> None:
    overtaken = Overtaken(placement)
    bring(placement, 0, 3)
    overtaken.look()
    bring(placement, 2)
    assert lost(overtaken) == [1]


def test_what_was_overtaken_since_the_last_look_has_time_until_the_next(placement: Placement) -> None:
    overtaken = Overtaken(placement)
    bring(placement, 0)
    overtaken.look()
    bring(placement, 2)
    assert lost(overtaken) == []
    assert lost(overtaken) == [1]


def test_each_block_has_an_edge_of_its_own(placement: Placement) -> None:
    overtaken = Overtaken(placement)
    bring(placement, 1, 25)
    overtaken.look()
    assert lost(overtaken) == [0, 20, 21, 22, 23, 24]
    settled = np.flatnonzero(overtaken.settled).tolist()
    assert settled == [0, 1, *range(20, 26)]


def test_a_complete_block_loses_nothing(placement: Placement) -> None:
    overtaken = Overtaken(placement)
    bring(placement, *range(PER_BLOCK))
    overtaken.look()
    assert lost(overtaken) == []


def test_the_ends_are_seen_with_the_last_chunk_of_every_block(placement: Placement) -> None:
    bring(placement, 9, 28)
    assert not placement.all_ends_seen()
    bring(placement, 19, 29)
    assert placement.all_ends_seen()
