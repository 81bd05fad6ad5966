"""How long service is interrupted when a core switch goes down in the middle of an Allgather: ``make bench``.

Every host's link is captured. What counts is the longest time for which any stream came to any host that should have
had it: from the last packet before to the first after, or to the end of the stream where none came. Streams are sent in
bursts, 0.2 s apart here, so that this is what is measured without a failure, too.
"""

from __future__ import annotations

import statistics

from rich.console import Console
from rich.table import Table

from experiments.analysis.context import Context, host_name
from experiments.analysis.outage import Outage, longest_outage
from experiments.analysis.streams import expected, passages
from experiments.analysis.trace import Trace, read_trace
from experiments.bench.runs import finished_run
from experiments.bench.target import judged
from experiments.results import Run, Summary
from topo.registry import parse_topology

TOPOLOGY = "fattree,k=4"
CORE = "c0"
"""The root of the only tree, as long as it is up."""
RATE_MBPS = 20
OPTIONS = (
    *("--topo", TOPOLOGY, "--bw", str(RATE_MBPS), "--size", "512KiB", "--warmup", "0"),
    *("--fault", f"at 1s: switch {CORE} down"),
)
TARGET_S = 1.0
"""By when service is restored."""
SHARE = 0.1
"""Of the result, that must have come down from the core that fails, and from the others: else it failed beside it."""


def measure() -> tuple[Outage, Trace, Run]:
    """One run, its captures, and the longest interruption in them; RuntimeError if the core had no part in it."""
    hosts = ",".join(parse_topology(TOPOLOGY).host)
    with finished_run(*OPTIONS, "--capture", hosts) as folder:
        summary = Summary.read(folder)
        trace = read_trace(sorted((folder / "captures").iterdir()), Context(summary.scenario))
    [run] = summary.runs
    outage = longest_outage(trace.points, passages(trace, expected(trace)))
    if outage is None or min(before_and_after(run)) < SHARE * run.ranks * run.bytes_per_rank:
        raise RuntimeError(f"{CORE} did not go down in mid-operation: bytes on cores' links are {run.link_bytes}")
    return outage, trace, run


def before_and_after(run: Run) -> tuple[int, int]:
    """Bytes that came down from the core that fails, and from all others."""
    down = {link: size for link, size in run.link_bytes.items() if link.startswith("c")}
    before = sum(size for link, size in down.items() if link.startswith(f"{CORE}->"))
    return before, sum(down.values()) - before


def bench_failures(iterations: int) -> None:
    """The table of interruptions."""
    table = Table(title=f"Core {CORE} down in mid-Allgather, {TOPOLOGY}, links of {RATE_MBPS} Mbit/s")
    for column in ("longest interruption (s)", "of what", "sent to", "recovered", "verified"):
        table.add_column(column, justify="right")
    lengths = []
    for _ in range(iterations):
        outage, trace, run = measure()
        lengths.append(outage.length_ns / 1e9)
        ends = host_name(outage.key.root), trace.points[outage.point].name
        table.add_row(f"{lengths[-1]:.3f}", *ends, str(run.packets.recovered), "yes" if run.verified else "NO")
    median = statistics.median(lengths)
    Console().print(table)
    found = f"median {median:.3f}, most {max(lengths):.3f}"
    print(judged(f"less than {TARGET_S:g} s", found, met=median < TARGET_S))
