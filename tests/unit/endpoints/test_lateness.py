"""How late a loop is, by size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import numpy as np

from endpoints.core.packets import U8
from endpoints.io.clock import now_ns
from endpoints.io.lateness import BOUNDS_NS, Lateness
from endpoints.io.loop import Frame, Lengths, Loop
from endpoints.station import Station


def test_the_longest_is_kept_and_all_are_counted_by_size() -> None:
    late = Lateness()
    for ns in (0, 999_999, 1_000_000, 7_000_000, BOUNDS_NS[-1]):
        late.note(ns)
    assert late.longest_ns == BOUNDS_NS[-1]
    assert late.counts == [2, 1, 1, 0, 1]


def test_what_is_served_early_is_not_late() -> None:
    late = Lateness()
    late.note(-5)
    assert (late.longest_ns, late.counts[0]) == (0, 1)


class OverdueStation:
    """A station whose next departure was due long ago, as that of a root with a head start, and that never hurries."""

    more = False

    def __init__(self, due: int) -> None:
        self.endpoint = self
        self.due = due

    def next_timeout(self) -> int:
        return self.due

    next_departure = next_timeout

    def handle_timer(self, now: int) -> None:
        """Nothing follows."""

    def transmit(self, now: int, budget: int) -> Iterator[Frame]:
        return iter(())

    def next_event(self) -> None:
        return None


class EmptyRing:
    """A ring into which nothing comes; a pipe stands for its socket."""

    at_border = False

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def take(self, limit: int) -> tuple[U8, Lengths]:
        return np.zeros((0, 64), np.uint8), np.zeros(0, np.int32)

    def release(self, count: int) -> None:
        """Nothing was taken."""

    def send(self, frame: Frame) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd


def test_what_was_overdue_before_the_loop_slept_does_not_make_it_late() -> None:
    reader, writer = (os.fdopen(fd, mode) for fd, mode in zip(os.pipe(), "rw", strict=True))
    with closing(reader), closing(writer):
        station = cast(Station, OverdueStation(due=now_ns() - 3_600_000_000_000))
        loop = Loop(station, EmptyRing(reader.fileno()), reader.fileno(), lambda event: None, nap_ns=0)
        turns = iter([False, False, False, False, True])
        loop.run_until(lambda: next(turns))
        assert sum(loop.lateness.counts) > 0, "its wakings were noted"
        assert loop.lateness.longest_ns < 3_600_000_000_000 // 2
