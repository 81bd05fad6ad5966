"""``treecast traffic``: what moved over the links, by tier and by link, beside theory."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.errors import UserError

SHORT_HELP = "Print what moved over the links, beside theory."
HELP = """Print the bytes and packets of an experiment by tier, beside theory; --links: of every link, --matrix: as one.

A tier is what its nodes send: host uplinks, edge, aggregation, core. Theory counts the frames that carry payload; what
is measured beyond it are acknowledgements, barrier, handshake and repairs. Below it: the links that each Allgather's
blocks cross on this fabric, with ranks in depth-first order, as they were placed, and in random order on average.

--paper needs no results: the traffic model published with the paper beside exact counting, and what differs by cause.

Example: treecast traffic results/latest --links --csv
"""


def command(
    results: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER|summary.json]", help="Default: results/latest.")
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="A row for every directed link.")] = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="Bytes from every node to every node.")] = False,
    paper: Annotated[bool, typer.Option("--paper", help="The published traffic model, explained.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print it as CSV.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    if as_json and as_csv:
        raise UserError("--json and --csv: choose one")
    if paper and (results or links or matrix):
        raise UserError("--paper: it is about the published model; leave out results, --links and --matrix")
    if links and matrix:
        raise UserError("--links and --matrix: choose one")
    from experiments.movement import traffic

    if paper:
        _print(traffic.paper(), as_json=as_json, as_csv=as_csv)
        return
    from experiments.results import SUMMARY, Summary

    source = results or Path("results/latest")
    file = source / SUMMARY if source.is_dir() else source
    try:
        summary = Summary.read(file)
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"traffic: {str(file)!r} cannot be read ({problem}); name a folder of results") from None
    if matrix:
        _print_matrices(traffic.matrices(summary), as_json=as_json)
        return
    _print(traffic.by_link(summary) if links else traffic.by_tier(summary), as_json=as_json, as_csv=as_csv)
    if not (links or as_json or as_csv):
        sys.stdout.write("\nlinks crossed, in blocks of N bytes\n")
        _print(traffic.crossings(summary.scenario), as_json=False, as_csv=False)


def _print(rows: Iterable[dict[str, Any]], *, as_json: bool, as_csv: bool) -> None:
    table = list(rows)
    if as_json:
        sys.stdout.write(json.dumps(table, indent=2) + "\n")
        return
    if not table:
        return
    names = list(table[0])
    lines = [[_text(row.get(name), plain=as_csv) for name in names] for row in table]
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([names, *lines])
        return
    widths = [max(map(len, column)) for column in zip(names, *lines, strict=True)]
    numeric = [not isinstance(table[0][name], str | dict) for name in names]
    for line in ([name.replace("_", " ") for name in names], *lines):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _text(value: Any, *, plain: bool) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{number:+d} {cause}" for cause, number in value.items())
    if isinstance(value, float):
        return repr(value) if plain else f"{value:.4f}"
    return ("" if plain else "-") if value is None else str(value)


def _print_matrices(rows: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(list(rows)) + "\n")
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in rows:
        writer.writerow([f"{row['algorithm']} {row['iteration']}", *row["nodes"]])
        writer.writerows([node, *values] for node, values in zip(row["nodes"], row["bytes"], strict=True))
