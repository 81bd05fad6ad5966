"""The loop of a host that is busy all the time, and how it is interrupted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest

from endpoints.core.packets import U8
from endpoints.io.loop import _LONGEST_NAP_NS, Frame, Lengths, Loop
from endpoints.station import Arrivals, Station

MANY = 100
"""Turns after which the tests give up."""


class BusyStation:
    """A station that finds a chunk in whatever comes; by default it lacks none."""

    more = False

    def __init__(self, missing: int = 0) -> None:
        self.endpoint = self
        self.missing = missing

    def receive(self, frames: U8, lengths: Lengths, now: int) -> Arrivals:
        return Arrivals.CHUNKS

    def next_timeout(self) -> None:
        return None

    next_departure = next_event = next_timeout

    def missing_ns(self) -> int:
        return self.missing

    def handle_timer(self, now: int) -> None:
        """It has none."""

    def transmit(self, now: int, budget: int) -> Iterator[Frame]:
        return iter(())


class BusyRing:
    """A ring in which there always is a frame."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def take(self, limit: int) -> tuple[U8, Lengths]:
        return np.zeros((1, 64), np.uint8), np.full(1, 64, np.int32)

    def release(self, count: int) -> None:
        """Nobody counts."""

    def send(self, frame: Frame) -> bool:
        return True

    @property
    def at_border(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._fd


class DividedRing(BusyRing):
    """A ring in which two frames lie, either side of the border of two blocks."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.released = 0

    @property
    def at_border(self) -> bool:
        return self.released == 1

    def take(self, limit: int) -> tuple[U8, Lengths]:
        there = min(1, 2 - self.released)
        return np.zeros((there, 64), np.uint8), np.full(there, 64, np.int32)

    def release(self, count: int) -> None:
        self.released += count


class Control:
    """Counts how often it is tended; then there is nothing more."""

    def __init__(self, fd: int) -> None:
        self.tended = 0
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def tend(self) -> None:
        self.tended += 1
        os.read(self._fd, 1)


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(3)]
    yield made
    for pair in made:
        for fd in pair:
            os.close(fd)


def turns(loop: Loop, interrupt_at: int | None, write_to: int) -> int:
    """How often the loop asks whether it has finished, if something is written after so many times."""
    asked = 0

    def finished() -> bool:
        nonlocal asked
        asked += 1
        if asked == interrupt_at:
            os.write(write_to, b"!")
        return asked >= MANY

    loop.run_until(finished)
    return asked


def test_a_host_to_which_something_comes_all_the_time_is_interrupted_all_the_same(pipes: list[tuple[int, int]]) -> None:
    (ring, _), (interrupt, write_to), _ = pipes
    loop = Loop(cast(Station, BusyStation()), BusyRing(ring), interrupt, lambda event: None, nap_ns=0)
    assert turns(loop, None, write_to) == MANY
    assert turns(loop, 5, write_to) < 10


@pytest.mark.parametrize("by", ["interrupt", "control"])
def test_a_nap_ends_when_something_is_asked_of_the_host(
    pipes: list[tuple[int, int]], by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else ends it: this test does not return if that does not."""
    (ring, _), (interrupt, to_interrupt), (asked, to_control) = pipes
    a_day = 86_400 * 10**9
    monkeypatch.setitem(_LONGEST_NAP_NS, Arrivals.CHUNKS, a_day)
    control = Control(asked)
    loop = Loop(cast(Station, BusyStation(a_day)), BusyRing(ring), interrupt, lambda event: None, a_day, control)
    writer = threading.Timer(0.01, os.write, (to_interrupt if by == "interrupt" else to_control, b"!"))
    writer.start()
    loop.run_until(lambda: control.tended > 0)
    writer.join()
    assert control.tended == (by == "control")


def test_what_is_asked_of_it_meanwhile_is_done_and_no_interrupt(pipes: list[tuple[int, int]]) -> None:
    (ring, _), (interrupt, _), (asked, write_to) = pipes
    control = Control(asked)
    loop = Loop(cast(Station, BusyStation()), BusyRing(ring), interrupt, lambda event: None, 0, control)
    assert turns(loop, 5, write_to) == MANY
    assert control.tended == 1


def test_nothing_that_has_come_is_left_in_the_next_block_while_the_host_naps(pipes: list[tuple[int, int]]) -> None:
    (descriptor, _), (interrupt, _), _ = pipes
    ring = DividedRing(descriptor)
    Loop(cast(Station, BusyStation()), ring, interrupt, lambda event: None, nap_ns=0).turn()
    assert ring.released == 2
