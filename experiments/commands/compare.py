"""``treecast compare``: algorithms side by side, on one fabric in one run."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments import options
from experiments.errors import UserError

if TYPE_CHECKING:
    from experiments.results import Summary

HELP = """Run algorithms in turns on the same fabric, and print one table of them.

By default all Allgathers: multicast, point-to-point, and those of external programs (Open MPI) where they are
installed. What is left out has a row that says so. With a result folder or its summary.json as FILE nothing is run:
the table of that experiment is printed again, from its summary alone.

Example: treecast compare --topo fattree,k=4 --bw 50 --size 1MiB --iterations 5
"""
SHORT_HELP = "Run algorithms in turns, print one table."

USUAL_KIND = "allgather"
ITERATIONS = "3"


def command(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Results to print again, or a scenario (YAML) to run.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="All algorithms for allgather (default), broadcast or reduce_scatter."),
    ] = None,
    algorithm: options.Algorithms = None,
    topo: options.Topology = None,
    bw: options.Rate = None,
    scale: options.Scale = None,
    size: options.Size = None,
    mtu: options.Mtu = None,
    placement: options.Placement = None,
    iterations: options.Iterations = None,
    warmup: options.Warmup = None,
    seed: options.Seed = None,
    trees: options.Trees = None,
    offload: options.Offload = None,
    workers: options.Workers = None,
    chains: options.Chains = None,
    loss: options.Loss = None,
    reorder: options.Reorder = None,
    name: options.Name = None,
    output: options.Output = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    plain: options.Plain = False,
    dry_run: options.DryRun = False,
) -> None:
    """Described by :data:`HELP`."""
    options_given = {
        "algorithms": algorithm, "topology": topo, "rate_bps": bw, "scale": scale, "size_bytes": size, "mtu": mtu,
        "placement": placement, "iterations": iterations, "warmup": warmup, "seed": seed, "trees": trees,
        "offload": offload, "workers": workers,
        "chains": chains, "loss": loss, "reorder": reorder, "name": name,
    }  # fmt: skip
    given = {field: value for field, value in options_given.items() if value is not None}
    finished = _results(file)
    if finished is not None:
        if given or kind is not None or dry_run:
            raise UserError(f"compare {str(file)!r}: these are results; leave the options of a run out")
        _show(finished, None, as_json=as_json, plain=plain)
        return
    from experiments.commands.run import print_yaml, run, scenario_of

    scenario = scenario_of(file, _completed(file, given, kind))
    if dry_run:
        print_yaml(scenario)
        return
    show = partial(_show, as_json=as_json, plain=plain or as_json)
    raise typer.Exit(run(scenario, output, show, as_json=as_json, plain=plain or as_json))


def _results(file: Path | None) -> Summary | None:
    """The summary in a result folder, or in a file that is one."""
    from experiments.results import SUMMARY, Summary

    if file is None:
        return None
    path = file / SUMMARY if file.is_dir() else file
    if path.suffix != ".json":
        return None
    try:
        return Summary.read(path)
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"compare {str(file)!r}: {path.name} cannot be read ({problem})") from None


def _completed(file: Path | None, given: dict[str, Any], kind: str | None) -> dict[str, Any]:
    """The fields that were given, and what makes a comparison of them where neither they nor the file say it."""
    from endpoints.collectives.kinds import KINDS
    from experiments.algorithms import algorithms
    from experiments.inputs import read

    said = {**(read(file) if file else {}), **given}
    if kind is not None and kind not in KINDS:
        raise UserError(f"--kind {kind!r}: write {' or '.join(KINDS)}")
    if kind is not None and "algorithms" in given:
        raise UserError("--kind and --algorithm: give one of them")
    usual: dict[str, Any] = {
        "algorithms": tuple(entry.name for entry in algorithms().values() if entry.kind == (kind or USUAL_KIND)),
        "iterations": ITERATIONS,
        "name": "compare",
    }
    if kind is not None:
        said.pop("algorithms", None)
    return {**{field: value for field, value in usual.items() if field not in said}, **given}


def _show(summary: Summary, folder: Path | None, *, as_json: bool, plain: bool) -> None:
    from experiments import ui
    from experiments.comparison import compare
    from experiments.comparison_table import comparison_table, remarks

    rows = compare(summary)
    if as_json:
        sys.stdout.write(json.dumps([asdict(row) | {"status": row.status} for row in rows], indent=2) + "\n")
        return
    lines = [*remarks(rows), *([f"results in {folder}"] if folder is not None else [])]
    ui.print_table(comparison_table(summary, rows), lines, plain=plain)
