"""``treecast calibrate``: the highest link rate that this machine emulates truly."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments import options
from experiments.errors import EXIT_INTERRUPTED, EXIT_OK, ExperimentFailed

if TYPE_CHECKING:
    from experiments.results import Summary
    from experiments.scenario import Scenario

HELP = """Find the highest link rate at which this machine emulates a topology truly.

Runs short Allgathers at several rates (bisection) and looks at the verdict of each on whether switches and hosts kept
up. A rate counts only if every operation was verified and valid. Let nothing else run meanwhile.

Example: treecast calibrate --topo fattree,k=4
"""
SHORT_HELP = "Find the highest true link rate here."


def command(
    topo: options.Topology = None,
    mtu: options.Mtu = None,
    algorithm: options.Algorithms = None,
    iterations: options.Iterations = "3",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was tried as JSON.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments.calibration import Search, size_bytes
    from experiments.commands.run import scenario_of

    options_given = {"topology": topo, "mtu": mtu, "algorithms": algorithm, "iterations": iterations}
    given = {field: value for field, value in options_given.items() if value is not None}

    usual = scenario_of(None, given)

    def at(rate_mbps: int) -> Scenario:
        size = size_bytes(rate_mbps, usual.ranks, usual.mtu)
        return scenario_of(None, {**given, "rate_bps": str(rate_mbps), "size_bytes": size})

    search = Search()
    tried: list[dict[str, Any]] = []
    begun = time.monotonic()
    say = sys.stderr if as_json else sys.stdout
    while (rate := search.next()) is not None:
        left = f", about {_left(begun, len(tried), search.tries_left)} left" if tried else ""
        say.write(f"{rate} Mbit/s ... (at most {search.tries_left} tries{left})\n")
        say.flush()
        found = _try(at(rate))
        if found is None:
            raise typer.Exit(EXIT_INTERRUPTED)
        say.write(f"{rate} Mbit/s: {found['verdict']}{_why(found)}\n")
        tried.append({"rate_mbps": rate, **found})
        search.record(valid=found["verdict"] == "valid")
    if as_json:
        sys.stdout.write(
            json.dumps({"topology": usual.topology, "best_mbps": search.best, "tried": tried}, indent=2) + "\n"
        )
    else:
        _show(tried)
    if search.best is None:
        raise ExperimentFailed(f"calibrate: no rate is valid for {usual.topology} here; use a smaller topology")
    say.write(f"use --bw {search.best} or less for {usual.topology} on this machine\n")


def _left(begun: float, done: int, left: int) -> str:
    return f"{(time.monotonic() - begun) / done * left:.0f} s"


def _why(found: dict[str, Any]) -> str:
    return f" ({found['reasons'][0]})" if found["reasons"] else ""


def _try(scenario: Scenario) -> dict[str, Any] | None:
    """Verdict, reasons and median part of the limit of a run; None if it was stopped."""
    from statistics import median

    from experiments import launch
    from experiments.results import Summary
    from experiments.ui import PlainProgress

    def finish(summary: Summary, _: Path) -> int:
        return EXIT_OK if summary.verified else ExperimentFailed.exit_code

    with (
        TemporaryDirectory(prefix="treecast-calibrate-") as folder,
        Path("/dev/null").open("w", encoding="utf-8") as nowhere,
    ):
        launched = launch.launch(scenario, Path(folder), lambda: PlainProgress(nowhere), finish)
        if launched.code == EXIT_INTERRUPTED:
            return None
        if launched.code != EXIT_OK:
            return {"verdict": "failed", "reasons": [f"exit code {launched.code}"], "limit_ratio": None}
        summary = Summary.read(launched.folder)
    ratios = [run.limit_ratio for run in summary.runs if run.limit_ratio is not None]
    return {
        "verdict": summary.fidelity.verdict,
        "reasons": summary.fidelity.reasons,
        "limit_ratio": round(median(ratios), 4) if ratios else None,
    }


def _show(tried: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="what was tried", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for name in ("Mbit/s", "of limit", "verdict"):
        table.add_column(name, justify="left" if name == "verdict" else "right")
    for entry in sorted(tried, key=lambda entry: entry["rate_mbps"]):
        ratio = entry["limit_ratio"]
        table.add_row(str(entry["rate_mbps"]), "-" if ratio is None else f"{ratio:.3f}", entry["verdict"])
    Console().print(table)
