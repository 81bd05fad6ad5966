"""``treecast app``: a program of the user's on every host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments import options

if TYPE_CHECKING:
    from experiments.results import Summary

HELP = """Run a Python program as the application of every host, with a NIC each.

The file has a function main(nic); what it can ask of nic stands in docs/nic.md. What it returns is printed, a line a
host. The program runs as root, like everything here.

Example: treecast app overlap.py --topo single,hosts=4 --workers 2
"""
SHORT_HELP = "Run a program on every host, with a NIC each."


def command(
    program: Annotated[Path, typer.Argument(metavar="FILE", help="A Python file with a function main(nic).")],
    topo: options.Topology = None,
    bw: options.Rate = None,
    mtu: options.Mtu = None,
    seed: options.Seed = None,
    trees: options.Trees = None,
    workers: options.Workers = None,
    output: options.Output = Path("results"),
) -> None:
    """Described by :data:`HELP`."""
    from experiments.commands.run import scenario_of

    given = {"topology": topo, "rate_bps": bw, "mtu": mtu, "seed": seed, "trees": trees, "workers": workers}
    values = {key: value for key, value in given.items() if value is not None}
    scenario = scenario_of(None, {**values, "offload": "nic", "warmup": 0, "name": "app"})

    from experiments import launch
    from experiments.applications import everywhere, load
    from experiments.console.jobs import QuietProgress

    main = load(program)

    def finish(_: Summary, __: Path) -> int:
        return 0

    raise typer.Exit(launch.launch(scenario, output, QuietProgress, finish, everywhere(main, _say)).code)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
