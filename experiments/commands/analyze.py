"""``treecast analyze``: captures read back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.errors import UserError, complain

if TYPE_CHECKING:
    from experiments.analysis.context import Context
    from experiments.analysis.report import Analysis

SHORT_HELP = "Read captures back: rates, losses and who recovered what."
HELP = """Read captures back: rates, losses and who recovered what.

Reads pcapng and pcap files, ours and those of tcpdump and Wireshark, and tells for each operation, root and tree when
its multicast passed, how fast, with which gaps, reorderings and duplicates; which PSNs were lost where; who recovered
what from whom by RDMA READ; and what each pair of hosts sent on its reliable connection. Several captures of one run
are compared. The summary.json of the run's folder tells where each chunk belongs.

Example: treecast analyze results/latest/captures/h1.pcapng results/latest/captures/h3.pcapng --figure arrivals.png
"""


def command(
    captures: Annotated[
        list[Path], typer.Argument(metavar="CAPTURE...", help="Capture files, or folders of results with captures.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw arrivals, recoveries and rates over time: .png, .svg or .pdf."),
    ] = None,
    operation: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Operation that is drawn; default: the last one.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="No colours.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments.analysis.report import analyze
    from experiments.analysis.trace import read_trace

    files = [file for path in captures for file in _files(path)]
    if figure is not None:
        _check_figure(figure)
    found = _context(files)
    trace = read_trace(files, found[1] if found else None)
    analysis = analyze(trace, str(found[0]) if found else None)
    if figure is not None:
        from experiments.analysis.figure import draw

        draw(trace, figure, operation)
    if as_json:
        sys.stdout.write(analysis.to_json())
    else:
        _print(analysis, plain=plain)
    for warning in analysis.warnings:
        complain(warning)
    if not found:
        complain(
            "no summary.json beside the captures: chunks that were READ, and chunks that are lost at either end of a"
            " block, cannot be told"
        )


def _files(path: Path) -> list[Path]:
    """The captures that an argument names."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in (*path.glob("captures/*.pcap*"), *path.glob("*.pcap*")) if file.is_file())
    if not files:
        raise UserError(f"capture {str(path)!r}: a folder without captures; treecast run --capture h1 makes them")
    return files


def _context(files: list[Path]) -> tuple[Path, Context] | None:
    """The one run that all captures are of, as far as they lie beside its summary."""
    from experiments.analysis.context import Context

    found = {entry[0]: entry for file in files if (entry := Context.beside(file)) is not None}
    if len(found) > 1:
        raise UserError(f"the captures are of {len(found)} runs ({', '.join(map(str, found))}): analyze one at a time")
    return next(iter(found.values()), None)


def _check_figure(figure: Path) -> None:
    if figure.suffix not in {".png", ".svg", ".pdf"}:
        raise UserError(f"figure {str(figure)!r}: its name must end with .png, .svg or .pdf")
    if not figure.resolve().parent.is_dir():
        raise UserError(f"figure {str(figure)!r}: there is no folder {str(figure.parent)!r}")


def _print(analysis: Analysis, *, plain: bool) -> None:
    from rich.console import Console
    from rich.measure import Measurement

    from experiments.analysis.tables import tables

    console = Console(no_color=plain or None, width=None if Console().is_terminal else 140)
    for table in tables(analysis):
        whole = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
        console.print(table, width=max(console.width, whole), crop=False, soft_wrap=True)
        console.print()
