"""``treecast chaos``: many runs under random faults."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments import options
from experiments.errors import UserError

HELP = """Run collectives under random timelines of mixed faults, unattended, and judge how each ended.

Each must end verified, or with an error that names who is missing, in bounded time; with no wrong byte, and nothing
left behind. Exit code 0 only then. A run that ended otherwise is told with the command that repeats it alone.

Example: treecast chaos --seed 7 --count 40
"""
SHORT_HELP = "Run collectives under random faults, and judge how each ends."


def command(
    seed: Annotated[int, typer.Option(min=0, max=10**9, help="Of the timelines, and of everything in the runs.")] = 1,
    count: Annotated[int, typer.Option(min=1, max=999, help="Number of runs.")] = 40,
    only: Annotated[int | None, typer.Option(min=1, max=999, metavar="NUMBER", help="This one alone.")] = None,
    topo: options.Topology = None,
    bw: options.Rate = None,
    size: options.Size = None,
    output: options.Output = Path("results/chaos"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the timelines and stop.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments import signals
    from experiments.chaos import chaos, scenario_for
    from experiments.commands.run import scenario_of

    given = {"topology": topo, "rate_bps": bw, "size_bytes": size or "256KiB", "warmup": 0}
    base = scenario_of(None, {key: value for key, value in given.items() if value is not None})
    numbers = [only] if only is not None else list(range(1, count + 1))
    if dry_run:
        for number in numbers:
            steps = scenario_for(base, seed, number).timeline
            sys.stdout.write(f"{number}: {'; '.join(map(str, steps))}\n")
        return
    if os.geteuid() != 0:
        raise UserError("chaos: network namespaces need root; run it as root or with sudo")
    with signals.raising():
        raise typer.Exit(chaos(base, seed, numbers, output, _say))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
