"""The queue in shared memory: entries come once, whole and in order, whatever the other side does."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from endpoints.core.packets import U8
from endpoints.nic.queue import LINE, QueueBroken, QueueFull, Reader, Writer, queue_bytes

ENTRY = struct.Struct("<Q60s")
DEPTH = 4


def memory() -> U8:
    return np.zeros(queue_bytes(ENTRY, DEPTH), np.uint8)


def both() -> tuple[U8, Writer, Reader]:
    shared = memory()
    return shared, Writer(shared, ENTRY, DEPTH), Reader(shared, ENTRY, DEPTH)


def entry(number: int) -> bytes:
    return ENTRY.pack(number, b"x" * (number % 61))


class QueueOfTwoProcesses(RuleBasedStateMachine):
    """Against a list, many times round."""

    def __init__(self) -> None:
        super().__init__()
        _, self.writer, self.reader = both()
        self.expected: list[bytes] = []
        self.count = 0

    @rule()
    @precondition(lambda self: len(self.expected) < DEPTH)
    def put(self) -> None:
        self.count += 1
        self.writer.put(entry(self.count))
        self.expected.append(entry(self.count))

    @rule()
    def take(self) -> None:
        assert self.reader.take() == (self.expected.pop(0) if self.expected else None)

    @rule()
    @precondition(lambda self: len(self.expected) == DEPTH)
    def overfill(self) -> None:
        with pytest.raises(QueueFull):
            self.writer.put(entry(0))

    @rule()
    def count_room(self) -> None:
        assert self.writer.room == DEPTH - len(self.expected)


TestQueueOfTwoProcesses = QueueOfTwoProcesses.TestCase


@given(before=st.integers(0, 3 * DEPTH), seen=st.data())
def test_an_entry_of_which_only_a_part_is_seen_is_not_there(before: int, seen: st.DataObject) -> None:
    """Torn at any byte: its writer died there, or the bytes reach the other processor in another order."""
    shared, writer, reader = both()
    for number in range(before):
        writer.put(entry(number))
        assert reader.take() == entry(number)
    old = shared.copy()
    writer.put(entry(before + 1))
    changed = np.flatnonzero(shared != old)
    missing = seen.draw(st.sets(st.sampled_from(changed.tolist()), min_size=1))
    new = shared.copy()
    shared[list(missing)] = old[list(missing)]
    assert reader.take() is None
    shared[:] = new
    assert reader.take() == entry(before + 1)
    assert reader.take() is None


@given(st.binary(min_size=queue_bytes(ENTRY, DEPTH), max_size=queue_bytes(ENTRY, DEPTH)))
def test_whatever_the_other_side_writes_is_an_entry_or_nothing_or_is_named_as_broken(noise: bytes) -> None:
    shared, writer, reader = both()
    shared[:] = np.frombuffer(noise, np.uint8)
    assert reader.take() in (None, *(noise[at : at + ENTRY.size] for at in range(LINE, len(noise), LINE)))
    shared[:] = np.frombuffer(noise, np.uint8)
    taken = int.from_bytes(noise[:8], "little")
    if taken:
        with pytest.raises(QueueBroken, match=f"{taken} entries taken, 0 put in"):
            writer.put(entry(1))
    else:
        writer.put(entry(1))


def test_a_reader_that_gives_back_more_than_there_was_is_broken() -> None:
    shared, writer, reader = both()
    writer.put(entry(1))
    reader.take()
    shared[:8].view(np.uint64)[0] = 2
    with pytest.raises(QueueBroken, match="2 entries taken, 1 put in, 4 held at most"):
        writer.put(entry(2))


def test_misuse_names_what_would_have_been_right() -> None:
    with pytest.raises(ValueError, match="a queue of 4 entries of 68 bytes is not 64 bytes long"):
        Writer(np.zeros(64, np.uint8), ENTRY, DEPTH)
    _, writer, _ = both()
    with pytest.raises(ValueError, match="an entry has 68 bytes, not 3"):
        writer.put(b"abc")
