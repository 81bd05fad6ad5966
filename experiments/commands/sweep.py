"""``treecast sweep``: a grid of runs, resumable."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.errors import UserError

HELP = """Run a grid of scenarios, in random order, and go on where it was stopped or killed.

FILE is a scenario with two more keys: vary (lists of values for any field of a scenario) and repetitions. Points and
their results are in OUTPUT/<name of the sweep>; the same command again makes only what is missing. A point that fails
is written down, and the sweep goes on; exit code 0 only if none has failed. FILE may also be a ready sweep: paper.

Example: treecast sweep loss.yaml, with loss.yaml holding vary: {loss: [0, 1%, 5%], size_bytes: [64KiB, 1MiB]}
"""
SHORT_HELP = "Run a grid of scenarios, resumable."


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep (YAML), or the name of a ready one: paper.")],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sweep's folder.")] = Path("results"),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make points that failed again.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No moving lines, no colours.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the points in their order and stop.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments.inputs import checked, read, ready
    from experiments.sweep.grid import grid_of

    path = ready(file)
    grid = grid_of(read(path), path.stem, checked)
    if dry_run:
        for point in grid.points:
            sys.stdout.write(f"{point.key}  {point.words}\n")
        return
    if os.geteuid() != 0:
        raise UserError("sweep: network namespaces need root; run it as root or with sudo")
    from experiments import signals
    from experiments.commands.run import available_memory
    from experiments.launch import platform_for
    from experiments.sweep.folder import opened
    from experiments.sweep.view import View
    from experiments.sweep.work import work

    free = available_memory()
    for point in grid.points:
        point.scenario.check_memory(free)
    platform_for(max((point.scenario for point in grid.points), key=lambda scenario: scenario.shaped_delay_ns))
    live = not plain and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    with opened(output / grid.name, path.read_text(encoding="utf-8")) as folder, signals.raising():
        raise typer.Exit(work(grid, folder, View(sys.stdout, len(grid.points), live=live), retry_failed=retry_failed))
