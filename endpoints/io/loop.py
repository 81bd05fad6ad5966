"""The loop that drives a station over a packet ring. It decides nothing but how long to sleep.

A host that wakes for every packet costs several times more CPU than one that sleeps a few milliseconds and takes a
batch, and sixteen hosts share one machine: so after a batch that brought multicast chunks the loop naps, as a NIC
moderates its interrupts; otherwise it waits for the next packet or deadline.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Protocol

from endpoints.core.events import Event
from endpoints.core.packets import U8
from endpoints.io.clock import now_ns
from endpoints.station import Frame, Lengths, Station

NAP_NS = 40_000_000
"""Longest sleep between two looks at a busy ring; the protocol's ``scheduling_ns`` must be more. Woken from a sleep, a
process finds its caches full of its neighbours' data, which costs more than the packets do."""

RING_SHARE = 8
"""A nap ends before an eighth of the ring can have filled at the link's rate."""

TAKE_LIMIT = 128
TRANSMIT_BUDGET = 64
RETRY_NS = 1_000_000
"""Wait after the kernel had no room for a frame."""


class PacketRing(Protocol):
    """What the loop needs of ``io.ring.Ring``."""

    def take(self, limit: int) -> tuple[U8, Lengths]:
        """Received frames, at most ``limit``."""

    def release(self, count: int) -> None:
        """Give slots back."""

    def send(self, frame: Frame) -> bool:
        """Send; false if there is no room now."""

    def fileno(self) -> int:
        """For poll."""


def nap_for(rq_depth: int, chunk_ns: int) -> int:
    """Nanoseconds of the longest nap on a ring of ``rq_depth`` frames into which a chunk comes every ``chunk_ns``."""
    return min(NAP_NS, rq_depth * chunk_ns // RING_SHARE)


class Loop:
    """``interrupt`` is a file descriptor whose readability ends :meth:`run_until`; ``nap_ns`` is :func:`nap_for`'s."""

    def __init__(
        self,
        station: Station,
        ring: PacketRing,
        interrupt: int,
        on_event: Callable[[Event], None],
        nap_ns: int,
    ) -> None:
        self.send_failures = 0
        self._station = station
        self._ring = ring
        self._on_event = on_event
        self._nap_ns = nap_ns
        self._due: int | None = 0
        """The station's next deadline as of the last sleep; calling its timers too early is harmless."""
        self._interrupt = interrupt
        self._poll = select.poll()
        self._poll.register(ring.fileno(), select.POLLIN)
        self._poll.register(interrupt, select.POLLIN)

    def run_until(self, finished: Callable[[], bool], at_most: int | None = None) -> None:
        """Drive the station until ``finished``, the interrupt, or the time ``at_most`` (ns)."""
        while not finished():
            bulk = self.turn()
            if finished() or self._sleep(bulk=bulk, at_most=at_most):
                return
            if at_most is not None and now_ns() >= at_most:
                return

    def turn(self) -> bool:
        """Receive, timers, transmit, events, once; true if multicast chunks came."""
        bulk = self._receive()
        now = now_ns()
        if self._due is not None and self._due <= now:
            self._station.handle_timer(now)
        self._transmit()
        while (event := self._station.endpoint.next_event()) is not None:
            self._on_event(event)
        return bulk

    def _receive(self) -> bool:
        """One batch, so that what comes meanwhile is part of the next one; more only when there is a backlog."""
        bulk = False
        taken = TAKE_LIMIT
        while taken == TAKE_LIMIT:
            frames, lengths = self._ring.take(TAKE_LIMIT)
            taken = len(lengths)
            if taken:
                bulk |= self._station.receive(frames, lengths, now_ns())
                self._ring.release(taken)
        return bulk

    def _transmit(self) -> None:
        more = True
        while more:
            for frame in self._station.transmit(now_ns(), TRANSMIT_BUDGET):
                while not self._ring.send(frame):
                    self.send_failures += 1
                    time.sleep(RETRY_NS / 1e9)
            more = self._station.endpoint.more

    def _sleep(self, *, bulk: bool, at_most: int | None) -> bool:
        """Sleep as long as nothing needs doing; true if interrupted."""
        self._due = self._station.next_timeout()
        deadlines = [at for at in (self._due, at_most) if at is not None]
        wait = min(deadlines) - now_ns() if deadlines else None
        if bulk:
            nap = min(self._nap_ns, self._station.endpoint.missing_ns())
            nap = nap if wait is None else min(nap, wait)
            if nap > 0:
                time.sleep(nap / 1e9)
            return False
        timeout_ms = None if wait is None else max(0.0, wait / 1e6)
        return any(fd == self._interrupt for fd, _ in self._poll.poll(timeout_ms))
