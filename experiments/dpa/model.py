"""What a NIC's data path accelerator (DPA) can do: many slow hardware threads that take a completion each at a time.

A thread that is alone on its core needs ``cycles`` for a completion, nearly all of which it waits for memory and
doorbells; only ``instructions`` of them are its core's work. So the threads of a core add up until the core has an
instruction to issue in every cycle, and the cores add up until the link is full::

    chunks/s = sum over cores of clock * min(threads / cycles, 1 / instructions), at most the link's

Nothing is lost to contention between threads in this model, so it is an upper bound: the paper ran 1.6 Tbit/s on 128
threads, the model needs fewer. An emulated NIC is the same with one thread to a core, whose cycles are its measured
cost per packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

LINKS_BPS = tuple(gbps * 10**9 for gbps in (50, 100, 200, 400, 800, 1600))
"""Links up to the one that the paper looks at; 1.6 Tbit/s are 48.8 million chunks of 4 KiB a second."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a completion takes of a thread that is alone on its core."""

    cycles: int
    instructions: int


TRANSPORTS = {"uc": Work(cycles=598, instructions=66), "ud": Work(cycles=1084, instructions=113)}
"""Of the paper's receive path by transport. Recalled with medium confidence, not read again: at 1.8 GHz they are 332 ns
and 602 ns a chunk, where 11.9 GiB/s of one thread (320 ns) is what was read for UC (PAPER 2.5)."""


@dataclass(frozen=True, slots=True)
class Dpa:
    """``cores`` of ``threads_per_core`` hardware threads at ``clock_hz``: those of a BlueField-3 (PAPER 2.5, read)."""

    cores: int = 16
    threads_per_core: int = 16
    clock_hz: int = 1_800_000_000

    @property
    def threads(self) -> int:
        """All of them."""
        return self.cores * self.threads_per_core

    def chunk_rate(self, work: Work, threads: int) -> Fraction:
        """Chunks a second that ``threads`` take, which fill one core after the other."""
        if not 0 <= threads <= self.threads:
            raise ValueError(f"{threads} threads: there are {self.cores} cores of {self.threads_per_core}")
        full, rest = divmod(threads, self.threads_per_core)
        return full * self._core(work, self.threads_per_core) + self._core(work, rest)

    def _core(self, work: Work, threads: int) -> Fraction:
        return self.clock_hz * min(Fraction(threads, work.cycles), Fraction(1, work.instructions))


def emulated(cost_ns: int, workers: int) -> tuple[Dpa, Work]:
    """An emulated NIC of so many workers, each of which has a core and takes ``cost_ns`` of it for a packet."""
    return Dpa(cores=workers, threads_per_core=1, clock_hz=1_000_000_000), Work(cost_ns, cost_ns)


def link_chunks(rate_bps: int, chunk_bytes: int) -> Fraction:
    """Chunks a second that fill a link, by their payload alone."""
    return Fraction(rate_bps, 8 * chunk_bytes)


def throughput_bps(dpa: Dpa, work: Work, threads: int, chunk_bytes: int, link_bps: int | None = None) -> int:
    """Payload that so many threads take off a link; without a link, off any."""
    rate = int(dpa.chunk_rate(work, threads) * 8 * chunk_bytes)
    return rate if link_bps is None else min(rate, link_bps)


def threads_for(dpa: Dpa, work: Work, link_bps: int, chunk_bytes: int) -> int | None:
    """The fewest threads that keep up with a link; None where all of them do not."""
    wanted = link_chunks(link_bps, chunk_bytes)
    return next((n for n in range(1, dpa.threads + 1) if dpa.chunk_rate(work, n) >= wanted), None)


def doubling(most: int) -> Sequence[int]:
    """1, 2, 4 and so on, and ``most`` itself."""
    return sorted({min(1 << power, most) for power in range(most.bit_length() + 1)})
