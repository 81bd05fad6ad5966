"""``treecast chaos``: many runs under random faults."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments import options
from experiments.errors import UserError

if TYPE_CHECKING:
    from experiments.folder import ResultFolder

HELP = """Run collectives under random timelines of mixed faults, unattended, and judge how each ended.

Each must end verified. Where a fault took a host away for longer than the others wait for it, it may also end in an
error that names this host and no other, in bounded time. No byte may be wrong, and nothing may be left behind. Exit
code 0 only then; else the first run of each class of defect is told, with the command that repeats it alone. What was
found is in OUTPUT/<time>-chaos-<seed>/chaos.json. Kinds of faults that this machine cannot do are told and not drawn.

Example: treecast chaos --seed 7 --count 40
         treecast chaos --kills --offload nic --workers 2 --topo single,hosts=3 --count 100
"""
SHORT_HELP = "Run collectives under random faults, and judge how each ends."


def command(
    seed: Annotated[int, typer.Option(min=0, max=10**9, help="Of the timelines, and of everything in the runs.")] = 1,
    count: Annotated[int, typer.Option(min=1, max=999, help="Number of runs.")] = 40,
    start: Annotated[int, typer.Option(min=1, max=999, metavar="NUMBER", help="The first run.")] = 1,
    only: Annotated[int | None, typer.Option(min=1, max=999, metavar="NUMBER", help="This one alone.")] = None,
    topo: options.Topology = None,
    bw: options.Rate = None,
    size: options.Size = None,
    offload: options.Offload = None,
    workers: options.Workers = None,
    kills: Annotated[
        bool, typer.Option("--kills", help="Kill one host each, or with NICs a part of one, and nothing else.")
    ] = False,
    output: options.Output = Path("results"),
    plain: options.Plain = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the timelines and stop.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments import signals
    from experiments.chaos.conduct import Chaos, chaos, judge
    from experiments.chaos.trials import closing, trials_table
    from experiments.commands.run import scenario_of
    from experiments.launch import platform_for
    from experiments.ui import print_table

    options_given = {"--topo": topo, "--bw": bw, "--size": size, "--offload": offload, "--workers": workers}
    given = {
        "topology": topo, "rate_bps": bw, "size_bytes": size or "256KiB", "warmup": 0,
        "offload": offload, "workers": workers,
    }  # fmt: skip
    base = scenario_of(None, {key: value for key, value in given.items() if value is not None})
    if not dry_run and os.geteuid() != 0:
        raise UserError("chaos: network namespaces need root; run it as root or with sudo")
    drawn = Chaos.on(base, seed, platform_for(base), kills=kills)
    numbers = [only] if only is not None else list(range(start, start + count))
    for name, reason in drawn.undrawn.items():
        _say(f"not drawn: {name} ({reason})")
    if dry_run:
        for number in numbers:
            _say(f"{number}: {'; '.join(map(str, drawn.scenario(number).timeline))}")
        return

    words = [word for name, value in options_given.items() if value is not None for word in (name, value)]
    words += ["--kills"] if kills else []

    def again(number: int) -> str:
        return shlex.join(["treecast", "chaos", "--seed", str(seed), "--only", str(number), *words])

    with signals.raising():
        folder = _folder(output, seed)
        try:
            code, found = chaos(drawn, numbers, folder, again, _say)
        finally:
            folder.hand_over()
            folder.discard_unused()
        if found.trials:
            print_table(trials_table(found.trials), [closing(found), f"results in {folder.path}"], plain=plain)
        judge(found)
        raise typer.Exit(code)


def _folder(output: Path, seed: int) -> ResultFolder:
    from datetime import UTC, datetime

    from experiments.folder import Owner, ResultFolder

    return ResultFolder.create(output, f"chaos-{seed}", datetime.now(UTC), Owner.calling(os.environ))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
