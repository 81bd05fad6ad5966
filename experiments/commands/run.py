"""``treecast run``: verified collectives on an emulated fabric."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments import options
from experiments.errors import ExperimentFailed

if TYPE_CHECKING:
    from experiments.results import Summary
    from experiments.scenario import Scenario

HELP = """Run verified collectives on an emulated fabric.

Builds the fabric, has the controller install and prove the multicast trees, runs the operations on one endpoint per
host, compares every received byte, and writes results/<time>-<name>/summary.json. Exit code 0 only if all is verified.

Example: treecast run --topo fattree,k=4 --bw 50 --size 1MiB --loss 1% --reorder 5% --seed 7 --capture h1,e00-a00
"""


def command(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A scenario (YAML), a ready one's name, or a summary.json to repeat."),
    ] = None,
    topo: options.Topology = None,
    bw: options.Rate = None,
    scale: options.Scale = None,
    size: options.Size = None,
    mtu: options.Mtu = None,
    algorithm: options.Algorithms = None,
    placement: options.Placement = None,
    iterations: options.Iterations = None,
    warmup: options.Warmup = None,
    seed: options.Seed = None,
    input_file: Annotated[
        str | None, typer.Option("--input", metavar="FILE", help="A file to split over the ranks.")
    ] = None,
    trees: options.Trees = None,
    chains: options.Chains = None,
    offload: options.Offload = None,
    workers: options.Workers = None,
    nic_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of every NIC; what does not fit goes in rounds.")
    ] = None,
    nic_cpus: Annotated[str | None, typer.Option(metavar="LIST", help="CPUs that NICs run on, like 0-2,5.")] = None,
    nic_limit: Annotated[str | None, typer.Option(metavar="CPUS", help="Most that each NIC gets, like 0.5.")] = None,
    send_batch: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Chunks that a root sends at a time.")
    ] = None,
    rq_depth: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Receive queue depth (staging slots) of every host.")
    ] = None,
    cutoff: Annotated[
        str | None, typer.Option(metavar="KIND", help="End of the fast path: inactivity or deadline.")
    ] = None,
    fetch_early: Annotated[
        bool | None,
        typer.Option(
            "--fetch-early/--fetch-at-cutoff",
            help="Fetch what is surely lost while the multicast goes on (usual), or only after it, as in the paper.",
        ),
    ] = None,
    loss: options.Loss = None,
    reorder: options.Reorder = None,
    duplicate: Annotated[str | None, typer.Option(metavar="PERCENT", help="Packets that come twice, like 1%.")] = None,
    corrupt: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Packets with a bit inverted, like 0.1%.")
    ] = None,
    impair: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FAULT",
            help="KIND:rx|tx:HOSTS:PROBABILITY or KIND:rx|tx:HOSTS:psn=LIST, like drop:rx:h3:psn=17,40-60 or"
            " corrupt:tx:h1,h2:1%; no HOSTS are all. `treecast impairments` lists the kinds. Repeatable.",
        ),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP",
            help="at TIME: FAULT, after the first operation's start (not a warm-up's), like"
            " 'at 1.5s: link e00-a00 loss 2% for 3s'. `treecast faults` lists the words. Repeatable.",
        ),
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="TIME", help="Delay of every link, like 50us (needs netem).")
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="PACKETS", help="Packets that every link's queue holds.")] = None,
    capture: Annotated[str | None, typer.Option(metavar="LIST", help="Hosts and links to capture: h1,e00-a00.")] = None,
    name: options.Name = None,
    output: options.Output = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    plain: options.Plain = False,
    dry_run: options.DryRun = False,
) -> None:
    """Described by :data:`HELP`."""
    given = {
        "topology": topo, "rate_bps": bw, "scale": scale, "size_bytes": size, "mtu": mtu, "algorithms": algorithm,
        "placement": placement, "iterations": iterations, "warmup": warmup, "seed": seed, "input": input_file,
        "trees": trees, "chains": chains, "send_batch": send_batch, "rq_depth": rq_depth, "cutoff": cutoff,
        "fetch_early": fetch_early, "offload": offload, "workers": workers, "nic_memory_bytes": nic_memory,
        "nic_cpus": nic_cpus, "nic_limit": nic_limit,
        "loss": loss, "reorder": reorder, "duplicate": duplicate, "corrupt": corrupt, "link_delay_ns": delay,
        "queue_packets": queue, "capture": capture, "name": name, "impairments": impair or None,
        "faults": fault or None,
    }  # fmt: skip
    resolved = scenario_of(scenario, {key: value for key, value in given.items() if value is not None})
    if dry_run:
        print_yaml(resolved)
        return
    show = partial(_show, as_json=as_json, plain=plain or as_json)
    raise typer.Exit(run(resolved, output, show, as_json=as_json, plain=plain or as_json))


def scenario_of(file: Path | None, given: dict[str, Any]) -> Scenario:
    """The scenario of a file, and of options by the fields that they set; checked, also against the free memory."""
    from experiments.inputs import parse_impairment, parse_timed_fault, resolve

    if "impairments" in given:
        given["impairments"] = [parse_impairment(text) for text in given["impairments"]]
    if "faults" in given:
        given["faults"] = [parse_timed_fault(text) for text in given["faults"]]
    resolved = resolve(file, given)
    resolved.check_memory(available_memory())
    return resolved


def available_memory() -> int:
    """Bytes of memory that are free on this machine."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def print_yaml(scenario: Scenario) -> None:
    """The scenario as a file that gives it again."""
    import yaml

    sys.stdout.write(yaml.safe_dump(json.loads(scenario.model_dump_json()), sort_keys=False))


def check_runs(summary: Summary) -> None:
    """:class:`ExperimentFailed` with the first thing that went wrong, where nothing was run, or not as expected."""
    from experiments.regression import disappointments

    for result in summary.runs:
        if result.error:
            raise ExperimentFailed(f"{result.algorithm}, iteration {result.iteration}: {result.error}")
    if not summary.runs:
        raise ExperimentFailed("; ".join(f"{entry.algorithm}: {entry.reason}" for entry in summary.skipped))
    if missed := list(disappointments(summary)):
        raise ExperimentFailed(f"{len(missed)} of the scenario's expectations do not hold: {'; '.join(missed)}")


def run(scenario: Scenario, output: Path, show: Callable[[Summary, Path], None], *, as_json: bool, plain: bool) -> int:
    """Run, have the results shown, and judge them; progress goes where JSON does not. The exit code."""
    from experiments import launch, ui

    def finish(summary: Summary, folder: Path) -> int:
        show(summary, folder)
        check_runs(summary)
        return 0

    stream = sys.stderr if as_json else sys.stdout
    return launch.launch(scenario, output, lambda: ui.make_progress(stream, plain=plain), finish).code


def _show(summary: Summary, folder: Path, *, as_json: bool, plain: bool) -> None:
    from experiments import ui

    if as_json:
        sys.stdout.write(summary.to_json())
    else:
        ui.print_summary(summary, folder, plain=plain)
