"""``treecast memory``: what a NIC's memory must hold for a collective, and whether it does."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments import options

if TYPE_CHECKING:
    from endpoints.nic.budget import Collective, Nic, Plan

SHORT_HELP = "Plan a NIC's memory for a collective."
HELP = """Plan a NIC's memory for a collective: state of the chunks, staging, queue pairs.

What does not fit is cut into rounds that do, each of which carries a slice of every block; what cannot be cut is
refused with numbers. Staging holds what the link brings while nobody takes it away, and a burst; --rq-depth gives its
slots instead. Sizes of queue pairs are nominal.

Examples:

treecast memory --ranks 16 --size 1MiB --bw 50

treecast memory --ranks 188 --size 64MiB --bw 200G --away 10us --memory 1.5MiB --bits-per-chunk 1
"""

PSN_BITS = (16, 18, 19, 20, 22, 24)
"""Of which the table of largest buffers has a row each."""


def command(
    ranks: Annotated[int, typer.Option(min=1, max=1 << 20, metavar="NUMBER", help="Ranks of the collective.")] = 16,
    size: options.Size = "1MiB",
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="See `treecast algorithms`.")] = "mcast_allgather",
    mtu: options.Mtu = "4096",
    bw: options.Rate = "50M",
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="A NIC's memory, like 1.5MiB. Default 8MiB.")
    ] = None,
    away: Annotated[
        str, typer.Option(metavar="TIME", help="Longest time for which nobody takes chunks out of staging.")
    ] = "45ms",
    burst: Annotated[
        int, typer.Option(min=0, metavar="CHUNKS", help="Chunks that may come ahead of the link's rate.")
    ] = 128,
    rq_depth: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Slots of staging, instead of --away and --burst.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Workers, each with its own staging.")] = 1,
    communicators: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Communicators that run such a collective at a time.")
    ] = 1,
    outstanding: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Collectives at a time on each; `run --offload nic` has 4.")
    ] = 1,
    psn_bits: Annotated[
        int, typer.Option(min=1, max=24, metavar="BITS", help="Bits that number the chunks of a receive buffer.")
    ] = 24,
    bits_per_chunk: Annotated[
        int | None, typer.Option(min=1, metavar="BITS", help="Known of each chunk; default: as here. The paper: 1.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from endpoints.nic import budget
    from experiments import units
    from experiments.algorithms import algorithm as find
    from experiments.errors import UserError
    from experiments.fields import check_mtu

    try:
        roots = find(algorithm).roots(ranks)
    except ValueError as problem:
        raise UserError(str(problem)) from None
    wanted = budget.Collective(ranks, roots, units.parse_size(size or "", "size"), check_mtu(mtu), psn_bits)
    depth = rq_depth or budget.staging_depth(
        rate_bps=units.parse_rate(bw or "", "bw"),
        away_ns=units.parse_time(away, "away"),
        burst=burst,
        mtu=wanted.mtu,
    )
    nic = budget.Nic(
        memory=budget.MEMORY if memory is None else units.parse_size(memory, "memory"),
        staging=max(1, depth),
        workers=workers,
        communicators=communicators,
        outstanding=outstanding,
        bits_per_chunk=bits_per_chunk or sum(budget.BITS_PER_CHUNK.values()),
    )
    try:
        its = budget.plan(wanted, nic)
    except budget.DoesNotFit as problem:
        raise UserError(
            f"memory: {problem}; give more --memory, fewer --communicators or a smaller --rq-depth"
        ) from None
    if as_json:
        sys.stdout.write(json.dumps(_plain(its, wanted, nic), indent=2) + "\n")
    else:
        _show(its, wanted, nic)


def _plain(its: Plan, wanted: Collective, nic: Nic) -> dict[str, Any]:
    return {
        "memory_bytes": its.memory,
        "planned_bytes": its.bytes,
        "parts": [
            {"part": part.name, "count": part.count, "unit_bytes": part.unit, "bytes": part.bytes, "why": part.why}
            for part in its.parts
        ],
        "rounds": its.rounds,
        "round_bytes": its.round_bytes,
        "largest_buffers": _largest(wanted, nic),
    }


def _largest(wanted: Collective, nic: Nic) -> list[dict[str, int]]:
    """What so many bits of PSN number, and how many communicators with such a buffer the memory holds."""
    from endpoints.nic.budget import largest_buffer, state_bytes

    return [
        {
            "psn_bits": bits,
            "buffer_bytes": largest_buffer(bits, wanted.mtu),
            "state_bytes": state_bytes(1 << bits, nic.bits_per_chunk),
            "bitmap_bytes": state_bytes(1 << bits, 1),
        }
        for bits in PSN_BITS
    ]


def _show(its: Plan, wanted: Collective, nic: Nic) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from experiments.units import format_size

    console = Console()
    table = Table(title="memory of a NIC", box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False, show_footer=True)
    total = f"{its.bytes} of {its.memory} bytes: {its.bytes / its.memory:.1%}"
    columns = {"part": "all", "number": "", "bytes each": "", "bytes": str(its.bytes), "why": total}
    for name, footer in columns.items():
        table.add_column(name, footer, justify="left" if name in {"part", "why"} else "right")
    for part in its.parts:
        table.add_row(part.name, str(part.count), str(part.unit), str(part.bytes), part.why)
    console.print(table)
    of = f"{wanted.roots} blocks of {format_size(wanted.block_bytes)}"
    if its.rounds == 1:
        sys.stdout.write(f"{of}: one round\n\n")
    else:
        sys.stdout.write(f"{of}: {its.rounds} rounds of {format_size(its.round_bytes)} of each block\n\n")
    numbers = Table(title="what bits of PSN number", box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name in ("PSN bits", "largest buffer", "bitmap alone", f"state, {nic.bits_per_chunk} bits per chunk"):
        numbers.add_column(name, justify="right")
    for row in _largest(wanted, nic):
        sizes = (row["buffer_bytes"], row["bitmap_bytes"], row["state_bytes"])
        numbers.add_row(str(row["psn_bits"]), *map(format_size, sizes))
    console.print(numbers)
