"""``treecast overlap``: what a collective leaves of the host's CPU while it runs on NICs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments import options
from experiments.errors import ExperimentFailed, UserError

if TYPE_CHECKING:
    from experiments.overlap.findings import Findings
    from experiments.ui import Progress

SHORT_HELP = "Compute on hosts while collectives run on their NICs."
HELP = """Compute on hosts while collectives run on their NICs.

An application computes a fixed number of matrix products, alone and then while its NIC carries out a collective. Two
targets are judged: the kernel takes at most 1.05 of its time alone, where the machine has CPUs for kernels, NICs and
switches; and hosts spend less than 2 % of their NICs' CPU time on communication. The result folder has overlap.json
beside summary.json. Exit code 1 where a target is missed.

Examples:

treecast overlap

treecast overlap --topo leafspine,leaves=2,spines=2,hosts=8 --computing 16 --bw 100 --rounds 3
"""
SINGLE_THREADED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""What keeps NumPy's linear algebra to one thread, whichever library it has; read when it is imported."""


def command(
    topo: options.Topology = "fattree,k=4",
    bw: options.Rate = "50M",
    size: options.Size = "4MiB",
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="One that NICs can carry out; see `treecast algorithms`.")
    ] = "mcast_allgather",
    workers: Annotated[str, typer.Option(metavar="NUMBER", help="Workers of each NIC.")] = "1",
    computing: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Hosts that compute, a CPU each.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Times that all of it is done.")] = 1,
    part: Annotated[
        float, typer.Option(min=0.01, max=1, metavar="PART", help="The kernel's time, of the collective's at least.")
    ] = 0.8,
    on_hosts: Annotated[
        bool, typer.Option(help="First run the collective on the hosts themselves, to compare.")
    ] = True,
    seed: options.Seed = None,
    output: options.Output = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print overlap.json.")] = False,
    plain: options.Plain = False,
) -> None:
    """Described by :data:`HELP`."""
    if "numpy" not in sys.modules:
        os.environ.update(dict.fromkeys(SINGLE_THREADED, "1"))
    from experiments import launch, ui
    from experiments.commands.run import check_runs, scenario_of
    from experiments.overlap.findings import OnHosts
    from experiments.overlap.measure import Overlap
    from experiments.results import Summary

    given: dict[str, Any] = {"topology": topo, "rate_bps": bw, "size_bytes": size, "algorithms": algorithm}
    given |= {"name": "overlap", "warmup": 0} | ({} if seed is None else {"seed": seed})
    scenario = scenario_of(None, given | {"offload": "nic", "workers": workers})
    if computing > scenario.ranks:
        raise UserError(f"--computing {computing}: {scenario.topology} has {scenario.ranks} hosts")

    def begin() -> Progress:
        return ui.make_progress(sys.stderr if as_json else sys.stdout, plain=plain or as_json)

    def check(summary: Summary, _: Path) -> int:
        check_runs(summary)
        return 0

    def finish(summary: Summary, folder: Path) -> int:
        check_runs(summary)
        assert overlap.found is not None
        _show(overlap.found, folder, as_json=as_json, plain=plain)
        _judge(overlap.found)
        return 0

    contrast = None
    if on_hosts:
        launched = launch.launch(scenario_of(None, given | {"name": "overlap-on-hosts"}), output, begin, check)
        if launched.code:
            raise typer.Exit(launched.code)
        contrast = OnHosts.of(Summary.read(launched.folder).runs[-1])
    overlap = Overlap(computing, rounds, part, contrast)
    raise typer.Exit(launch.launch(scenario, output, begin, finish, overlap.conduct).code)


def _show(found: Findings, folder: Path, *, as_json: bool, plain: bool) -> None:
    from experiments import ui
    from experiments.overlap.table import overlap_table, remarks

    if as_json:
        sys.stdout.write(found.to_json())
        return
    ui.print_table(overlap_table(found), [*remarks(found), f"results in {folder}"], plain=plain)


def _judge(found: Findings) -> None:
    from experiments.overlap.findings import targets

    if missed := [target for target in targets(found) if target.met is False]:
        told = "; ".join(f"{target.name}: {target.value:.4f}, target {target.bound:g}" for target in missed)
        raise ExperimentFailed(f"overlap: {told}")
