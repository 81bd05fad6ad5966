"""``treecast report``: figures and tables of what was measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

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
        sys.stdout.write(f"{plate.name}: {plate.title}, {len(plate.table.rows)} rows\n")
    for title, why in done.left_out:
        sys.stdout.write(f"left out: {title}: {why}\n")
    sys.stdout.write(f"report in {done.page}\n")
