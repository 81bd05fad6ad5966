"""Whether a small collective suffers beside a large one on the same NIC: ``two_sizes`` on every host, as users do."""

from __future__ import annotations

import json
import statistics
import tempfile

from rich.console import Console
from rich.table import Table

from experiments.bench import two_sizes
from experiments.bench.runs import treecast
from experiments.bench.target import judged
from experiments.units import format_size
from topo.registry import parse_topology

FABRICS = "fattree,k=4", "single,hosts=3"
"""Among few hosts the small one brings least, and what it waits for counts most."""
RATE = "50"
WAYS = {"together": "together", "amidst": "small later"}
MOST = 2.0
"""Times as long as alone a small one may take."""


def bench_outstanding() -> None:
    """The tables, and whether the small one was starved; RuntimeError with the words of a run that failed."""
    worst = 0.0
    for topology in FABRICS:
        hosts = len(parse_topology(topology).hosts)
        seconds = measured("--topo", topology, "--bw", RATE)
        table = Table(title=f"Two Allgathers on one NIC, {topology}, {RATE} Mbit/s, slowest of {hosts} hosts")
        for column in ("posted", "bytes of a rank", "alone (s)", "beside the other (s)", "times"):
            table.add_column(column, justify="right")
        for way, words in WAYS.items():
            for name, size in (("small", two_sizes.SMALL), ("large", two_sizes.LARGE)):
                alone, beside = seconds[f"{name}_alone"], seconds[f"{name}_{way}"]
                table.add_row(words, format_size(size), f"{alone:.3f}", f"{beside:.3f}", f"{beside / alone:.2f}")
                worst = max(worst, beside / alone if name == "small" else 0.0)
        Console().print(table)
    print(judged(f"the small one takes at most {MOST:g} times as long as alone", f"{worst:.2f}", met=worst <= MOST))


def measured(*options: str) -> dict[str, float]:
    """By what was measured, the median over turns of the slowest host's seconds."""
    with tempfile.TemporaryDirectory() as folder:
        said = treecast("app", two_sizes.__file__, *options, "--output", folder)
    hosts = [json.loads(line.partition(": ")[2]) for line in said.splitlines()]
    return {
        name: statistics.median(max(turn) for turn in zip(*(host[name] for host in hosts), strict=True))
        for name in hosts[0]
    }
