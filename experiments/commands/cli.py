"""``treecast cli``: a console on a running fabric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments import options
from experiments.errors import ExperimentFailed, UserError

if TYPE_CHECKING:
    from experiments.results import Summary

HELP = """Open Mininet's command line on a running fabric, with collectives, faults and captures added.

Type help for the commands. Commands may also come from a file or on standard input; then errors are told, the others
are carried out, and the exit code is 1 if there was any.

Example: treecast cli --topo fattree,k=4 --bw 50
"""
SHORT_HELP = "Open a console on a running fabric."


def command(
    topo: options.Topology = None,
    bw: options.Rate = None,
    scale: options.Scale = None,
    mtu: options.Mtu = None,
    seed: options.Seed = None,
    trees: options.Trees = None,
    name: options.Name = None,
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="Commands to carry out, a line each.")] = None,
    output: options.Output = Path("results"),
) -> None:
    """Described by :data:`HELP`."""
    from experiments.commands.run import scenario_of

    given = {"topology": topo, "rate_bps": bw, "scale": scale, "mtu": mtu, "seed": seed, "trees": trees}
    values = {key: value for key, value in given.items() if value is not None}
    if script is not None and not script.is_file():
        raise UserError(f"--script {str(script)!r}: no such file")
    scenario = scenario_of(None, {**values, "warmup": 0, "name": name or "console"})

    from experiments import launch
    from experiments.console.conduct import Console
    from experiments.console.jobs import QuietProgress

    progress = QuietProgress()
    console = Console(progress, script)

    def finish(_: Summary, __: Path) -> int:
        if console.wrong:
            raise ExperimentFailed(f"cli: {console.wrong} commands or operations went wrong")
        return 0

    raise typer.Exit(
        launch.launch(scenario, output, lambda: progress, finish, console, interactive=console.interactive).code
    )
