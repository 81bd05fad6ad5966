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
from endpoints.io.lateness import Lateness
from endpoints.station import Arrivals, Frame, Lengths, Station

NAP_NS = 40_000_000
"""Longest sleep between two looks at a busy ring; the protocol's ``scheduling_ns`` must be more. Woken from a sleep, a
process finds its caches full of its neighbours' data, which costs more than the packets do."""

READ_NAP_NS = 10_000_000
"""The same after RDMA READs or their data, in which several round trips must fit into a timeout."""

WRITE_NAP_NS = 20_000_000
"""The same after RDMA WRITEs, whose acknowledgement the sender waits for."""

RELAY_NAP_NS = 3_000_000
"""The least where the next rank waits for what comes; the nap lasts as long as two pieces of that take on the link."""

_LONGEST_NAP_NS = {Arrivals.READS: READ_NAP_NS, Arrivals.WRITES: WRITE_NAP_NS, Arrivals.CHUNKS: NAP_NS}

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

    @property
    def at_border(self) -> bool:
        """Whether those given back last were fewer than had come, perhaps."""

    def send(self, frame: Frame) -> bool:
        """Send; false if there is no room now."""

    def fileno(self) -> int:
        """For poll."""


class Control(Protocol):
    """What the loop needs of ``io.live_faults.Control``."""

    def fileno(self) -> int:
        """For poll."""

    def tend(self) -> None:
        """Do what is asked for."""


def nap_for(rq_depth: int, chunk_ns: int) -> int:
    """Nanoseconds of the longest nap on a ring of ``rq_depth`` frames into which a chunk comes every ``chunk_ns``."""
    return min(NAP_NS, rq_depth * chunk_ns // RING_SHARE)


class Loop:
    """``interrupt`` is a file descriptor whose readability ends :meth:`run_until`; ``nap_ns`` is :func:`nap_for`'s.

    Both it and ``control``, which is tended, are looked at between turns; a nap ends when one of them is readable.
    """

    def __init__(
        self,
        station: Station,
        ring: PacketRing,
        interrupt: int,
        on_event: Callable[[Event], None],
        nap_ns: int,
        control: Control | None = None,
    ) -> None:
        self.send_failures = 0
        self.lateness = Lateness()
        self._station = station
        self._ring = ring
        self._on_event = on_event
        self._nap_ns = nap_ns
        self._due: int | None = 0
        """The station's next deadline as of the last sleep; calling its timers too early is harmless."""
        self._promised: int | None = None
        """The next deadline beyond which the last sleep was not meant to last."""
        self._interrupt = interrupt
        self._poll = select.poll()
        self._poll.register(ring.fileno(), select.POLLIN)
        self._poll.register(interrupt, select.POLLIN)
        self._control = control
        self._asked = select.poll()
        self._asked.register(interrupt, select.POLLIN)
        if control is not None:
            for poll in (self._poll, self._asked):
                poll.register(control.fileno(), select.POLLIN)

    def run_until(self, finished: Callable[[], bool], at_most: int | None = None) -> None:
        """Drive the station until ``finished``, the interrupt, or the time ``at_most`` (ns)."""
        while not finished():
            if self._interrupted():
                return
            arrivals = self.turn()
            if finished() or self._sleep(arrivals, at_most):
                return
            if at_most is not None and now_ns() >= at_most:
                return

    def _interrupted(self) -> bool:
        """Whether the interrupt is there; the control is tended."""
        asked = [fd for fd, _ in self._asked.poll(0)]
        if self._control is not None and self._control.fileno() in asked:
            self._control.tend()
        return self._interrupt in asked

    def turn(self) -> Arrivals:
        """Receive, timers, transmit, events, once; what came."""
        arrivals = self._receive()
        now = now_ns()
        if self._promised is not None and self._promised <= now:
            self.lateness.note(now - self._promised)
        if self._due is not None and self._due <= now:
            self._station.handle_timer(now)
        self._transmit()
        while (event := self._station.endpoint.next_event()) is not None:
            self._on_event(event)
        return arrivals

    def _receive(self) -> Arrivals:
        """One batch, so that what comes meanwhile is part of the next one; more only when there is a backlog.

        None of what has come is left: what is missing then is not here, and a nap may last until it can be.
        """
        arrivals = Arrivals.CONTROL
        taken = TAKE_LIMIT
        while taken == TAKE_LIMIT or (taken and self._ring.at_border):
            frames, lengths = self._ring.take(TAKE_LIMIT)
            taken = len(lengths)
            if taken:
                arrivals = max(arrivals, self._station.receive(frames, lengths, now_ns()))
                self._ring.release(taken)
        return arrivals

    def _transmit(self) -> None:
        more = True
        while more:
            for frame in self._station.transmit(now_ns(), TRANSMIT_BUDGET):
                while not self._ring.send(frame):
                    self.send_failures += 1
                    time.sleep(RETRY_NS / 1e9)
            more = self._station.endpoint.more

    def _sleep(self, arrivals: Arrivals, at_most: int | None) -> bool:
        """Sleep as long as nothing needs doing; true if interrupted."""
        self._due = self._station.next_timeout()
        departure = self._station.next_departure()
        # What is overdue on purpose, such as a root's head start, makes nobody late: only waking up from here on does.
        self._promised = None if departure is None else max(departure, now_ns())
        if arrivals is not Arrivals.CONTROL:
            nap = min(_LONGEST_NAP_NS[arrivals], self._nap_ns)
            awaited = self._station.endpoint.awaited_ns() if arrivals is Arrivals.WRITES else 0
            if awaited:
                nap = min(nap, max(2 * awaited, RELAY_NAP_NS))
            missing = self._station.endpoint.missing_ns()
            if arrivals is not Arrivals.READS or missing:
                nap = min(nap, missing)
            self._nap(nap, self._promised, at_most)
            return False
        deadlines = [at for at in (self._due, at_most) if at is not None]
        timeout_ms = max(0.0, (min(deadlines) - now_ns()) / 1e6) if deadlines else None
        return any(fd == self._interrupt for fd, _ in self._poll.poll(timeout_ms))

    def _nap(self, nap: int, *deadlines: int | None) -> None:
        """Sleep so many nanoseconds, or until a deadline; deaf to the ring, but not to who interrupts or asks."""
        now = now_ns()
        end = min([now + nap, *(at for at in deadlines if at is not None)])
        if end > now and not self._asked.poll((end - now) // 1_000_000):
            time.sleep(max(0, end - now_ns()) / 1e9)  # what poll does not count: less than a millisecond
