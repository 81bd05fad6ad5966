"""A whole host, bytes in and bytes out: impairments, codec and endpoint joined; no sockets, no clock.

The same station runs over packet rings in an emulated host (``io.loop``) and in the virtual-time network
(``experiments.sim``), driven by the same pump: receive or timer in; frames, events and the next deadline out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from endpoints.core.endpoint import Endpoint
from endpoints.core.packets import U8, Batch, Opcode, Outgoing

Frame = bytes | memoryview | U8
READ_OPCODES = frozenset(range(Opcode.RC_READ_REQUEST, Opcode.RC_READ_RESPONSE_ONLY + 1))

Lengths = npt.NDArray[np.int32]


class Arrivals(IntEnum):
    """What a batch of frames brought, by how soon the host need look again."""

    CONTROL = 0
    """Nothing, or messages that somebody may wait for."""
    READS = 1
    """RDMA READs or their data: more of them follow closely."""
    WRITES = 2
    """RDMA WRITEs: a stream at the link's rate, parts of which may have to be handed on."""
    CHUNKS = 3
    """Multicast chunks: a stream at the link's rate."""


class Wire(Protocol):
    """Packets to frames and back (``wire.codec``)."""

    def encode(self, item: Outgoing) -> Iterable[Frame]:
        """The frames of one item."""

    def decode(self, frames: U8, lengths: Lengths) -> Batch:
        """The packets of frames of shape (n, stride)."""


class Impairments(Protocol):
    """Injected faults of one direction (``impairments``)."""

    def apply(self, frames: U8, lengths: Lengths, now_ns: int) -> list[tuple[U8, Lengths]]:
        """What is left to hand on now."""

    def due(self, now_ns: int) -> list[tuple[U8, Lengths]]:
        """What was held back and is due."""

    def next_timeout(self) -> int | None:
        """When :meth:`due` has something."""


class Station:
    """``rx`` and ``tx`` are the impairments of each direction, None where there are none."""

    def __init__(
        self, endpoint: Endpoint, wire: Wire, rx: Impairments | None = None, tx: Impairments | None = None
    ) -> None:
        self.endpoint = endpoint
        self.counters: Counter[str] = Counter()
        self._wire = wire
        self.impair(rx, tx)

    def impair(self, rx: Impairments | None, tx: Impairments | None) -> None:
        """Have other impairments from now on."""
        self._rx = rx
        self._tx = tx

    def receive(self, frames: U8, lengths: Lengths, now: int) -> Arrivals:
        """Take frames off the ring, shape (n, stride), and alter them; the most frequent kind among them."""
        self.counters["frames_received"] += len(lengths)
        if self._rx is None:
            return self._take(frames, lengths, now)
        parts = self._rx.apply(frames, lengths, now)
        return max((self._take(part, sizes, now) for part, sizes in parts), default=Arrivals.CONTROL)

    def _take(self, frames: U8, lengths: Lengths, now: int) -> Arrivals:
        batch = self._wire.decode(frames, lengths)
        self.endpoint.receive(batch, now)
        if batch.chunks is not None:
            return Arrivals.CHUNKS
        if batch.writes is not None:
            return Arrivals.WRITES
        return Arrivals.READS if any(packet.opcode in READ_OPCODES for packet in batch.rc) else Arrivals.CONTROL

    def handle_timer(self, now: int) -> None:
        """Release what was held back, then let the endpoint's timers run."""
        if self._rx is not None:
            for frames, lengths in self._rx.due(now):
                self._take(frames, lengths, now)
        self.endpoint.handle_timer(now)

    def transmit(self, now: int, budget: int) -> Iterator[Frame]:
        """Frames to send now."""
        frames = (frame for item in self.endpoint.transmit(now, budget) for frame in self._wire.encode(item))
        for frame in frames if self._tx is None else self._impaired(frames, now):
            self.counters["frames_sent"] += 1
            self.counters["bytes_sent"] += len(frame)
            yield frame

    def _impaired(self, frames: Iterable[Frame], now: int) -> Iterator[Frame]:
        assert self._tx is not None
        for frame in frames:
            row = np.frombuffer(bytearray(frame), np.uint8)[None, :]
            for part, lengths in self._tx.apply(row, np.array([len(frame)], np.int32), now):
                yield from _rows(part, lengths)
        for part, lengths in self._tx.due(now):
            yield from _rows(part, lengths)

    def next_timeout(self) -> int | None:
        """The earliest time at which there is something to do."""
        return _earliest(self.next_departure(), self._rx)

    def next_departure(self) -> int | None:
        """The same, but for packets that are held back on their way in: a host that naps does not see them sooner."""
        return _earliest(self.endpoint.next_timeout(), self._tx)


def _earliest(at: int | None, side: Impairments | None) -> int | None:
    other = None if side is None else side.next_timeout()
    return other if at is None else at if other is None else min(at, other)


def _rows(frames: U8, lengths: Lengths) -> Iterator[Frame]:
    for row, length in zip(frames, lengths.tolist(), strict=True):
        yield row[:length]
