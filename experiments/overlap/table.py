"""What an overlap experiment found, as a person sees it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich import box
from rich.table import Table

from experiments.overlap.application import SIDE
from experiments.overlap.findings import Communication, Findings, Target, targets
from experiments.units import format_rate, format_size

COLUMNS = (
    "kernel\n(s)",
    "of\nalone",
    "collective\n(s)",
    "kernels\n(CPU s)",
    "posting, waiting\n(CPU s)",
    "NICs\n(CPU s)",
)


def overlap_table(found: Findings) -> Table:
    """A row for each way to do it; medians of the rounds."""
    size, rate = format_size(found.bytes_per_rank), format_rate(found.link_rate_bps)
    table = Table(
        title=f"{found.topology}, {found.ranks} ranks, blocks of {size}, links of {rate}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    table.add_column("", no_wrap=True)
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    rounds = found.rounds
    alone = median(max(entry.alone.values()) for entry in rounds)
    beside = median(max(entry.beside.values()) for entry in rounds)
    slowdown = median(entry.slowdown for entry in rounds)
    table.add_row("kernel alone", f"{alone:.3f}", "1.000", *_cells())
    table.add_row("collective on NICs, hosts idle", "-", "-", *_cells(found.idle))
    table.add_row(
        "kernel, collective on NICs",
        f"{beside:.3f}",
        f"{slowdown:.3f}",
        *_cells(*(entry.communication for entry in rounds)),
    )
    if found.on_hosts is not None:
        table.add_row(
            "collective on hosts", "-", "-", f"{found.on_hosts.seconds:.3f}", "-", f"{found.on_hosts.host_cpu:.4f}", "-"
        )
    return table


def _cells(*collectives: Communication) -> list[str]:
    """Medians."""
    if not collectives:
        return ["-"] * 4
    return [
        f"{median(entry.seconds for entry in collectives):.3f}",
        f"{median(entry.kernel_cpu for entry in collectives):.3f}",
        f"{median(entry.host_cpu for entry in collectives):.4f}",
        f"{median(entry.nic_cpu for entry in collectives):.3f}",
    ]


def remarks(found: Findings) -> Iterator[str]:
    """What the table's figures leave open, and the targets, a line each."""
    pinned = ", ".join(f"{host} on CPU {cpu}" for host, cpu in found.pinned.items())
    yield f"kernel: {found.products} products of matrices of {SIDE} x {SIDE} doubles, {pinned}; {found.cpus} CPUs"
    yield f"CPU times of all hosts together, from {found.accounting}"
    covered = min(entry.covered for entry in found.rounds)
    if covered < 1:
        yield f"the collective was on during {covered:.0%} of the kernel's time"
    for target in targets(found):
        yield _told(target)


def _told(target: Target) -> str:
    verdict = {True: "met", False: "MISSED", None: "not judged"}[target.met]
    value, bound = (f"{target.value:.4f}", f"{target.bound:g}")
    remark = f" ({target.remark})" if target.remark else ""
    return f"{target.name}: {value}, target {bound}: {verdict}{remark}"
