"""What a NIC costs a collective: Allgather with the protocol on the host, on its NIC, on two workers of it, in turns.

An application and its NIC are processes that wake each other, on the same processor here; the part of the limit that
is reached may suffer from that by ``MOST_LOST`` at most.
"""

from __future__ import annotations

import statistics

from rich.console import Console
from rich.table import Table

from experiments.bench.runs import finished_run
from experiments.bench.target import judged
from experiments.results import Run, Summary

MODES = {
    "host": (),
    "NIC": ("--offload", "nic"),
    "NIC, 2 workers": ("--offload", "nic", "--workers", "2"),
}
OPTIONS = ("--topo", "fattree,k=4", "--bw", "50", "--size", "1MiB")
TURNS = 3
MOST_LOST = 0.05
"""Of the part of the limit, by a NIC of one worker."""


def bench_modes(iterations: int) -> None:
    """``TURNS`` runs of each mode, in turns, of some operations each; the table, and what the NIC costs."""
    found: dict[str, list[Run]] = {mode: [] for mode in MODES}
    per_run = -(-iterations // TURNS)
    for _ in range(TURNS):
        for mode, options in MODES.items():
            with finished_run(*OPTIONS, "--iterations", str(per_run), *options) as folder:
                found[mode] += Summary.read(folder).runs
    table = Table(title=f"Allgather 1 MiB, 16 hosts, fat tree k=4, 50 Mbit/s, {TURNS * per_run} operations, in turns")
    for column in ("protocol on the", "of limit", "least", "most", "to the host", "CPU of hosts (s)", "of NICs (s)"):
        table.add_column(column, justify="left" if column == "protocol on the" else "right")
    medians = {}
    for mode, runs in found.items():
        ratios = [operation.limit_ratio or 0.0 for operation in runs]
        medians[mode] = statistics.median(ratios)
        to_host = medians[mode] / medians["host"]
        hosts = statistics.median(operation.host_cpu_seconds or 0.0 for operation in runs)
        nics = statistics.median(operation.cpu.get("nic", 0.0) for operation in runs)
        row = (medians[mode], min(ratios), max(ratios), to_host)
        table.add_row(mode, *(f"{value:.3f}" for value in row), f"{hosts:.2f}", f"{nics:.2f}")
    Console().print(table)
    kept = medians["NIC"] / medians["host"]
    least = 1 - MOST_LOST
    print(judged(f"a NIC reaches at least {least:.2f} of what the host does", f"{kept:.3f}", met=kept >= least))
