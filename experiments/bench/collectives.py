"""What part of its limit a collective reaches on a real fabric, and how its time grows with the hosts: ``make bench``.

Allgather on a k=4 fat tree, without faults at two link rates and with losses, and Broadcast: the median of several
operations after a warm-up, beside the part of the limit that two cores should reach. And one Broadcast among 4, 16 and
54 hosts, whose time should not grow.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from experiments.bench.runs import finished_run
from experiments.bench.target import judged
from experiments.results import Summary


@dataclass(frozen=True, slots=True)
class Case:
    """A collective to run: ``part`` of the limit is what its median should reach on two cores, 0 where none is set."""

    what: str
    topology: str
    rate_mbps: int
    part: float
    options: tuple[str, ...] = ()


_ALLGATHER = ("--size", "1MiB")
_BROADCAST = ("--size", "4MiB", "--algorithm", "mcast_broadcast")

PARTS = (
    Case("Allgather 1 MiB", "fattree,k=4", 50, 0.97, _ALLGATHER),
    Case("Allgather 1 MiB", "fattree,k=4", 100, 0.90, _ALLGATHER),
    Case("... 1 % lost, 5 % late", "fattree,k=4", 50, 0.88, (*_ALLGATHER, "--loss", "1%", "--reorder", "5%")),
    Case("... 5 % lost, 5 % late", "fattree,k=4", 50, 0.75, (*_ALLGATHER, "--loss", "5%", "--reorder", "5%")),
    Case("... 1 % lost on every link", "fattree,k=4", 50, 0.80, (*_ALLGATHER, "--fault", "at 0s: link * loss 1%")),
    Case("Broadcast 4 MiB", "fattree,k=4", 50, 0.95, _BROADCAST),
)
"""Losses and reordering (late) are at every receiver, but where links are named: then they are the network's."""

GROWTH = tuple(
    Case(f"Broadcast 4 MiB, {hosts} hosts", topology, 10, 0.0, _BROADCAST)
    for hosts, topology in ((4, "leafspine,leaves=2,spines=2,hosts=2"), (16, "fattree,k=4"), (54, "fattree,k=6"))
)
"""From few hosts to many on links that all of them can bear: constant time is the claim (PAPER 2.1)."""
LARGEST_GROWTH = 1.10


def run(case: Case, iterations: int) -> Summary:
    """What one real run had; RuntimeError with its words if it failed."""
    options = ("--topo", case.topology, "--bw", str(case.rate_mbps), "--iterations", str(iterations), *case.options)
    with finished_run(*options) as folder:
        return Summary.read(folder)


def bench_parts(iterations: int) -> None:
    """The table of parts of the limit."""
    table = Table(title=f"Part of the limit, 16 hosts, fat tree k=4, {iterations} operations after a warm-up")
    for column in ("collective", "links (Mbit/s)", "median", "least", "most", "target"):
        table.add_column(column, justify="left" if column == "collective" else "right")
    for case in PARTS:
        ratios = [operation.limit_ratio or 0.0 for operation in run(case, iterations).runs]
        median = statistics.median(ratios)
        mark = "met" if median >= case.part else "missed"
        figures = (f"{median:.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}", f"{case.part:.2f} {mark}")
        table.add_row(case.what, str(case.rate_mbps), *figures)
    Console().print(table)


def bench_growth(iterations: int) -> None:
    """The table of one Broadcast among more and more hosts."""
    table = Table(title=f"Broadcast, links of 10 Mbit/s, median of {iterations} operations after a warm-up")
    for column in ("collective", "time (s)", "to the first", "fidelity"):
        table.add_column(column, justify="left" if column == "collective" else "right")
    times = []
    for case in GROWTH:
        summary = run(case, iterations)
        times.append(statistics.median(operation.seconds or math.inf for operation in summary.runs))
        verdicts = sorted({summary.verdict_of(operation) for operation in summary.runs})
        table.add_row(case.what, f"{times[-1]:.3f}", f"{times[-1] / times[0]:.3f}", ", ".join(verdicts))
    Console().print(table)
    growth = times[-1] / times[0]
    print(judged(f"at most {LARGEST_GROWTH:.2f} times as long", f"{growth:.3f}", met=growth <= LARGEST_GROWTH))
