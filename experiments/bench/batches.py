"""What a worker's batches tell: its CPU time for a packet, waking included or not, and the rate at which it takes them.

A worker that wakes finds its caches full of others' data and pays for that with its first batch; one that is never done
before more has come does not sleep. So its limit follows from the batches that come behind another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SMALLEST = 64
"""Packets of a batch that is like those at the limit, which have 128, or what is left of a block of the ring."""


@dataclass(frozen=True, slots=True)
class Batch:
    """``count`` packets, done at ``at_ns`` by the clock and ``cpu_ns`` of the worker's time; ``woke`` for the first."""

    count: int
    woke: bool
    at_ns: int
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class Received:
    """What a worker took, and the CPU time that it spent, sleeping and waking included."""

    batches: Sequence[Batch]
    cpu_ns: int

    @property
    def packets(self) -> int:
        """All of them."""
        return sum(batch.count for batch in self.batches)

    @property
    def packet_ns(self) -> float:
        """CPU time of a packet, with its part in waking."""
        return self.cpu_ns / self.packets

    @property
    def per_wake(self) -> float:
        """Packets for which it woke."""
        return self.packets / sum(batch.woke for batch in self.batches)

    @property
    def awake_ns(self) -> float:
        """CPU time of a packet in batches that come behind another one without a sleep between, small ones apart."""
        pairs = [(a, b) for a, b in pairwise(self.batches) if not b.woke and b.count >= SMALLEST]
        return sum(after.cpu_ns - before.cpu_ns for before, after in pairs) / sum(after.count for _, after in pairs)

    @property
    def rate(self) -> float:
        """Packets a second by the clock, from the end of the first batch on."""
        first, last = self.batches[0], self.batches[-1]
        return (self.packets - first.count) * 1e9 / (last.at_ns - first.at_ns)
