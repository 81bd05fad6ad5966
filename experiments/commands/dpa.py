"""``treecast dpa``: how many hardware threads keep up with a link."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from experiments.dpa.model import Dpa, Work

SHORT_HELP = "Predict what a NIC's hardware threads keep up with."
HELP = """Predict what a NIC's data path accelerator (DPA) keeps up with, over threads and links up to 1.6 Tbit/s.

Its threads wait for memory most of the time, so the threads of a core add up until it issues an instruction in every
cycle; contention is not modelled, so figures are upper bounds. The defaults are a BlueField-3's; cycles and
instructions per completion (UC 598 and 66, UD 1084 and 113) are recalled from the paper with medium confidence, not
read again.

--cost or --measure predict an emulated NIC instead: one worker to a core, with its cost per packet.

Examples:

treecast dpa --figure dpa.svg

treecast dpa --transport ud --chunk 64

treecast dpa --cycles 2000 --instructions 200 --cores 8 --clock-ghz 2

treecast dpa --measure --workers 2
"""


def command(
    transport: Annotated[str, typer.Option(metavar="LIST", help="uc, ud, or both: uc,ud.")] = "uc,ud",
    cycles: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Cycles per completion of a thread alone, instead.")
    ] = None,
    instructions: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Instructions among them; default: all of them.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, max=1024, metavar="NUMBER", help="Cores.")] = 16,
    threads_per_core: Annotated[int, typer.Option(min=1, max=1024, metavar="NUMBER", help="Threads of each.")] = 16,
    clock_ghz: Annotated[float, typer.Option(min=0.001, max=100, metavar="GHZ", help="Clock.")] = 1.8,
    chunk: Annotated[str, typer.Option(metavar="SIZE", help="Bytes of payload per chunk.")] = "4KiB",
    cost: Annotated[
        str | None, typer.Option(metavar="TIME", help="An emulated NIC that takes so long for a packet, like 4us.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="An emulated NIC, its cost measured on this machine, which must be quiet.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=1024, metavar="NUMBER", help="Workers of an emulated NIC.")] = 1,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments import units
    from experiments.dpa.model import TRANSPORTS, Dpa, Work, emulated
    from experiments.errors import UserError

    size = units.parse_size(chunk, "chunk")
    if size == 0:
        raise UserError("chunk 0: a chunk has at least one byte")
    if (cost is not None) + measure + (cycles is not None) > 1:
        raise UserError("--cycles, --cost and --measure: choose one")
    if instructions is not None and (cycles is None or instructions > cycles):
        raise UserError(f"instructions {instructions}: give the --cycles of a completion, at least as many")
    works: Mapping[str, Work]
    if cost is not None or measure:
        cost_ns = _measured(size) if cost is None else units.parse_time(cost, "cost")
        if cost_ns == 0:
            raise UserError("cost 0: a packet takes some time")
        dpa, work = emulated(cost_ns, workers)
        works = {f"emulated, {cost_ns} ns a packet": work}
    else:
        dpa = Dpa(cores, threads_per_core, round(clock_ghz * 1e9))
        if cycles is not None:
            works = {"as given": Work(cycles, instructions or cycles)}
        else:
            names = [name.strip() for name in transport.lower().split(",") if name.strip()]
            if not names or not set(names) <= TRANSPORTS.keys():
                raise UserError(f"transport {transport!r}: known are {', '.join(TRANSPORTS)}")
            works = {name.upper(): TRANSPORTS[name] for name in names}
    if figure is not None:
        _draw(dpa, works, size, figure)
    if as_json:
        sys.stdout.write(json.dumps(_plain(dpa, works, size), indent=2) + "\n")
    else:
        _show(dpa, works, size)


def _measured(chunk_bytes: int) -> int:
    """Nanoseconds of CPU per packet of the receive path, at a batch of 16."""
    from experiments.bench.receive import MTU, receive_us
    from experiments.errors import UserError

    if chunk_bytes != MTU:
        raise UserError(f"chunk {chunk_bytes}: --measure is for chunks of {MTU} bytes; give the --cost of others")
    return round(receive_us(16, passes=5) * 1000)


def _draw(dpa: Dpa, works: Mapping[str, Work], chunk_bytes: int, path: Path) -> None:
    from experiments.dpa.figure import draw
    from experiments.errors import UserError

    try:
        draw(dpa, works, chunk_bytes, path)
    except (ValueError, OSError) as problem:
        raise UserError(f"figure {str(path)!r}: {problem}") from None


def _plain(dpa: Dpa, works: Mapping[str, Work], chunk_bytes: int) -> dict[str, Any]:
    from experiments.dpa.model import LINKS_BPS, doubling, link_chunks, threads_for, throughput_bps

    return {
        "cores": dpa.cores,
        "threads_per_core": dpa.threads_per_core,
        "clock_hz": dpa.clock_hz,
        "chunk_bytes": chunk_bytes,
        "works": {
            name: {
                "cycles": work.cycles,
                "instructions": work.instructions,
                "threads": [
                    {
                        "threads": count,
                        "chunks_per_s": float(dpa.chunk_rate(work, count)),
                        "bps": throughput_bps(dpa, work, count, chunk_bytes),
                    }
                    for count in doubling(dpa.threads)
                ],
                "links": [
                    {
                        "link_bps": link,
                        "chunks_per_s": float(link_chunks(link, chunk_bytes)),
                        "threads": threads_for(dpa, work, link, chunk_bytes),
                        "bps_of_all": throughput_bps(dpa, work, dpa.threads, chunk_bytes, link),
                    }
                    for link in LINKS_BPS
                ],
            }
            for name, work in works.items()
        },
    }


def _show(dpa: Dpa, works: Mapping[str, Work], chunk_bytes: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from experiments.units import format_rate, format_size

    plain = _plain(dpa, works, chunk_bytes)
    threads = Table(title=f"payload taken, chunks of {format_size(chunk_bytes)}", box=box.SIMPLE_HEAD, show_edge=False)
    links = Table(title="threads that keep up with a link", box=box.SIMPLE_HEAD, show_edge=False)
    for table, columns in ((threads, ("threads",)), (links, ("link", "M chunks/s"))):
        for column in (*columns, *works):
            table.add_column(column, justify="right")
    its = list(plain["works"].values())
    for rows in zip(*(one["threads"] for one in its), strict=True):
        cells = [f"{row['bps'] / 1e9:,.1f} Gbit/s, {row['chunks_per_s'] / 1e6:,.2f} M/s" for row in rows]
        threads.add_row(str(rows[0]["threads"]), *cells)
    for rows in zip(*(one["links"] for one in its), strict=True):
        cells = [f"more than {dpa.threads}" if row["threads"] is None else str(row["threads"]) for row in rows]
        links.add_row(format_rate(rows[0]["link_bps"]), f"{rows[0]['chunks_per_s'] / 1e6:.2f}", *cells)
    console = Console()
    console.print(threads)
    sys.stdout.write("\n")
    console.print(links)
