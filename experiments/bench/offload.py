"""What workers of a NIC cost on a real path, and what they keep up with: over a cable, two namespaces apart.

**Cost.** CPU time of a worker for a packet, at a rate far below its limit, alone and beside another one. They share
nothing but the machine, so it should stay what it is.

**Limit.** The model of ``experiments.dpa`` is given the CPU time of a packet as it was measured at such a rate, where
the worker was awake already. It predicts how many packets a second so many workers take. The clock confirms it: rings
are filled while the workers are stopped, then emptied as fast as they can.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from endpoints.io.loop import NAP_NS
from experiments.bench.batches import Received
from experiments.bench.cable import Cable, cable
from experiments.bench.target import judged
from experiments.bench.wired import Stream, bench, make_streams
from experiments.dpa.model import emulated

WORKERS = 2
COST_RATE = 8000
LIMIT_RATE = 16000
"""Packets a second of each worker, some per cent of what it can take; within a nap several batches come."""
LIMIT_TURNS = 2
"""Turns for the limit for each of the passes: they are short, and what the machine gives goes up and down."""
MOST_COST = 1.15
MOST_OFF = 0.10


@dataclass(frozen=True, slots=True)
class Site:
    """A cable, and the streams for one worker and for two."""

    cable: Cable
    alone: list[Stream]
    beside: list[Stream]
    cores: list[int]

    def paced(self, rate: int, turn: int, workers: int = WORKERS) -> list[Received]:
        """What so many workers take at ``rate`` packets a second each; one alone is on each core in turns."""
        with bench(self.cable, self._streams(workers), self._on(turn, workers), NAP_NS) as ready:
            return ready.paced(rate)

    def drained(self, turn: int, workers: int) -> list[Received]:
        """What they take from full rings."""
        with bench(self.cable, self._streams(workers), self._on(turn, workers), nap_ns=0) as ready:
            return ready.drained()

    def _streams(self, workers: int) -> list[Stream]:
        return self.alone if workers == 1 else self.beside

    def _on(self, turn: int, workers: int) -> list[int]:
        return [self.cores[turn % WORKERS]] if workers == 1 else self.cores


def bench_offload(passes: int) -> None:
    """Both tables."""
    cores = sorted(os.sched_getaffinity(0))[:WORKERS]
    if len(cores) < WORKERS:
        print(f"workers on a cable: left out, {len(cores)} core and {WORKERS} workers")
        return
    with cable() as ends:
        site = Site(ends, make_streams(1, LIMIT_RATE), make_streams(WORKERS, LIMIT_RATE), cores)
        _bench_cost(site, passes)
        _bench_limit(site, passes)


def _bench_cost(site: Site, passes: int) -> None:
    alone, beside, ratios = [], [], []
    for turn in range(passes):
        [one] = site.paced(COST_RATE, turn, workers=1)
        both = site.paced(COST_RATE, turn)
        alone.append(one)
        beside += both
        ratios.append(statistics.fmean(worker.packet_ns for worker in both) / one.packet_ns)
    title = f"CPU of a worker at {COST_RATE} packets/s, over a cable, waking included, median of {passes} turns"
    table = Table(title=title)
    for column in ("workers", "us/packet", "packets a wake", "of one"):
        table.add_column(column, justify="right")
    ratio = statistics.median(ratios)
    for workers, taken, of_one in ((1, alone, 1.0), (WORKERS, beside, ratio)):
        cost = statistics.median(worker.packet_ns for worker in taken) / 1e3
        wakes = statistics.median(worker.per_wake for worker in taken)
        table.add_row(str(workers), f"{cost:.2f}", f"{wakes:.0f}", f"{of_one:.2f}")
    Console().print(table)
    print(judged(f"beside another at most {MOST_COST:g} of alone", f"{ratio:.2f}", met=ratio <= MOST_COST))


def _bench_limit(site: Site, passes: int) -> None:
    costs: list[float] = []
    rates: dict[int, list[float]] = {1: [], WORKERS: []}
    for turn in range(LIMIT_TURNS * passes):
        [paced] = site.paced(LIMIT_RATE, turn, workers=1)
        costs.append(paced.awake_ns)
        for workers, found in rates.items():
            found.append(workers * statistics.median(one.rate for one in site.drained(turn, workers)))
    title = f"The limit of an emulated NIC, predicted from CPU at {LIMIT_RATE} packets/s, median of {len(costs)} turns"
    table = Table(title=title)
    for column in ("workers", "us/packet", "predicted packets/s", "from full rings", "of predicted"):
        table.add_column(column, justify="right")
    offs = []
    for workers, found in rates.items():
        predicted = [_predicted(cost, workers) for cost in costs]
        ratio = statistics.median(rate / limit for rate, limit in zip(found, predicted, strict=True))
        offs.append(abs(ratio - 1))
        figures = (f"{statistics.median(values):,.0f}" for values in (predicted, found))
        table.add_row(str(workers), f"{statistics.median(costs) / 1e3:.2f}", *figures, f"{ratio:.2f}")
    Console().print(table)
    said = f"off by {', '.join(f'{off:.0%}' for off in offs)}"
    print(judged(f"within {MOST_OFF:.0%} of predicted", said, met=max(offs) <= MOST_OFF))


def _predicted(cost_ns: float, workers: int) -> float:
    """Packets a second, as the model has it."""
    dpa, work = emulated(round(cost_ns), workers)
    return float(dpa.chunk_rate(work, workers))
