"""Blocks that lie apart have the addresses of blocks that do not."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core.errors import ProtocolError
from endpoints.core.packets import U8
from endpoints.core.receive_buffer import ReceiveBuffer

MEMORY = np.arange(40, dtype=np.uint8)
APART = MEMORY.reshape(4, 10)[:, 2:6]
"""Four blocks of four bytes, ten apart."""


def bytes_at(buffer: ReceiveBuffer, at: int, length: int) -> list[int] | None:
    view = buffer.view(at, length)
    return None if view is None else view.tolist()


def test_memory_in_one_piece_is_its_own_addresses() -> None:
    buffer = ReceiveBuffer(MEMORY)
    assert bytes_at(buffer, 7, 20) == list(range(7, 27))
    assert buffer.blocks(4).tolist() == MEMORY.reshape(4, 10).tolist()
    assert buffer.piece_bytes == 40


def test_blocks_apart_are_addressed_one_after_the_other() -> None:
    buffer = ReceiveBuffer(APART)
    assert (buffer.size, buffer.piece_bytes) == (16, 4)
    assert bytes_at(buffer, 5, 3) == [13, 14, 15]
    assert buffer.blocks(4) is APART


def test_a_view_is_the_memory_itself() -> None:
    memory = MEMORY.copy()
    view = ReceiveBuffer(memory.reshape(4, 10)[:, 2:6]).view(8, 4)
    assert view is not None
    view[:] = 99
    assert memory[22:26].tolist() == [99] * 4


@pytest.mark.parametrize("memory", [MEMORY, APART])
def test_nothing_is_seen_beyond_it(memory: U8) -> None:
    buffer = ReceiveBuffer(memory)
    size = buffer.size
    for at, length in ((-1, 1), (0, size + 1), (size, 1), (4, -1)):
        assert buffer.view(at, length) is None
    assert bytes_at(buffer, size, 0) == []


def test_bytes_of_two_blocks_apart_are_not_one_view() -> None:
    assert ReceiveBuffer(APART).view(2, 4) is None


def test_blocks_that_touch_are_one_piece() -> None:
    assert bytes_at(ReceiveBuffer(MEMORY.reshape(4, 10)), 8, 4) == [8, 9, 10, 11]


@pytest.mark.parametrize("count", [0, 3])
def test_a_buffer_of_another_number_of_blocks_is_refused(count: int) -> None:
    for memory in (MEMORY, APART):
        with pytest.raises(ProtocolError, match=r"does not hold|is not one of"):
            ReceiveBuffer(memory).blocks(count)


def test_bytes_that_are_not_side_by_side_are_refused() -> None:
    with pytest.raises(ProtocolError, match="side by side"):
        ReceiveBuffer(MEMORY[::2])
    with pytest.raises(ProtocolError, match="side by side"):
        ReceiveBuffer(MEMORY.reshape(2, 4, 5))
