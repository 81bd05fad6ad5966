"""``treecast report``: figures and tables of what was measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.report.figure import Plate

HELP = """Write figures and tables of what a run or a sweep has measured.

DIR is the folder of a run (also one of several algorithms), of a sweep, or of several runs. Into it go report.html, one
page that holds everything, figures/ with PNG and SVG files, and tables/ with CSV files. A figure that has no data is
left out, with a line that says what would bring some. Needs no root.

Example: treecast report results/latest
"""
SHORT_HELP = "Write figures and tables of what was measured."


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run, of a sweep, or of several runs.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the report; default: DIR itself.")
    ] = None,
) -> None:
    """Described by :data:`HELP`."""
    from experiments.report.evidence import gather
    from experiments.report.write import write

    done = write(gather(folder), output or folder)
    for plate in done.plates:
        if plate.drawing is None:
            _print_table(plate)
        else:
            sys.stdout.write(f"figures/{plate.name}: {plate.title}\n")
    for title, why in done.left_out:
        sys.stdout.write(f"left out: {title}: {why}\n")
    sys.stdout.write(f"report in {done.page}\n")


def _print_table(plate: Plate) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from experiments.report.page import told

    table = Table(title=plate.title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in plate.table.columns:
        table.add_column(column)
    for row in plate.table.rows:
        table.add_row(*map(told, row))
    console = Console()
    console.width = max(console.width, 120)
    console.print(table)
