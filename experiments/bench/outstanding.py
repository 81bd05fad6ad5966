"""Whether a small collective suffers beside a large one on the same NIC: ``two_sizes`` on every host, as users do."""

from __future__ import annotations

import json
import statistics
import tempfile

from rich.console import Console
from rich.table import Table

from experiments.bench import two_sizes
from experiments.bench.runs import treecast
from experiments.units import format_size

OPTIONS = ("--topo", "fattree,k=4", "--bw", "50")
MOST = 2.0
"""Times as long as alone a small one may take."""


def bench_outstanding() -> None:
    """The table, and whether the small one was starved; RuntimeError with the words of a run that failed."""
    seconds = measured(*OPTIONS)
    table = Table(title="Two Allgathers outstanding on one NIC, 16 hosts, fat tree k=4, 50 Mbit/s, slowest host")
    for column in ("bytes of a rank", "alone (s)", "beside the other (s)", "times"):
        table.add_column(column, justify="right")
    ratios = {}
    for name, size in (("small", two_sizes.SMALL), ("large", two_sizes.LARGE)):
        alone, together = seconds[f"{name}_alone"], seconds[f"{name}_together"]
        ratios[name] = together / alone
        table.add_row(format_size(size), f"{alone:.3f}", f"{together:.3f}", f"{ratios[name]:.2f}")
    Console().print(table)
    mark = "met" if ratios["small"] <= MOST else "missed"
    print(f"target: the small one takes at most {MOST:g} times as long as alone: {mark} ({ratios['small']:.2f})")


def measured(*options: str) -> dict[str, float]:
    """By what was measured, the median over turns of the slowest host's seconds."""
    with tempfile.TemporaryDirectory() as folder:
        said = treecast("app", two_sizes.__file__, *options, "--output", folder)
    hosts = [json.loads(line.partition(": ")[2]) for line in said.splitlines()]
    return {
        name: statistics.median(max(turn) for turn in zip(*(host[name] for host in hosts), strict=True))
        for name in hosts[0]
    }
