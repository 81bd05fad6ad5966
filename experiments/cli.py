"""The command ``treecast``. Heavy imports wait until a command needs them, so that ``--help`` is quick."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from experiments.errors import EnvironmentMissing, ExperimentFailed, UserError, exit_code_of
from experiments.units import format_time

if TYPE_CHECKING:
    from experiments.scenario import Scenario
    from topo.platform import Missing, Platform

RUN_HELP = """Run verified collectives on an emulated fabric.

Builds the fabric, has the controller install and prove the multicast trees, runs the operations on one endpoint per
host, compares every received byte, and writes results/<time>-<name>/summary.json. Exit code 0 only if all is verified.

Example: treecast run --topo fattree,k=4 --bw 50 --size 1MiB --loss 1% --reorder 5% --seed 7 --capture h1,e00-a00
"""

USERSPACE_SETTINGS = {
    "net.core.wmem_default": 134_217_728,
    "net.core.rmem_default": 16_777_216,
    "sch_htb/htb_hysteresis": 1,
}
"""What the userspace datapath needs of the kernel.

It sends through one socket for all ports: frames that wait in shaped queues count against its buffer, and at the
default size a link loses a quarter of a stream that would fit. And it takes frames singly when they come singly: with
hysteresis HTB lets a link's burst of four frames out at once and then waits, at the same rate; on two cores that
carries half as much again.
"""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Treecast emulates multicast collectives on fat trees of Open vSwitch, with faults, on one machine.",
)


@app.command(help=RUN_HELP)
def run(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A scenario (YAML), or a summary.json to repeat.")
    ] = None,
    topo: Annotated[
        str | None,
        typer.Option(
            metavar="TOPOLOGY", help="fattree,k=4 or leafspine,leaves=4,spines=2,hosts=4; see `treecast topologies`."
        ),
    ] = None,
    bw: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rate of every link: 50M, 56G; a bare number is Mbit/s.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Links are shaped at bw / scale: --bw 56G --scale 1000.")
    ] = None,
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="Bytes per rank: 1MiB, 64KiB, 1000.")] = None,
    mtu: Annotated[str | None, typer.Option(metavar="BYTES", help="RoCE path MTU: 256, 512, 1024, 2048, 4096.")] = None,
    algorithm: Annotated[
        str | None, typer.Option(metavar="LIST", help="Comma-separated; `treecast algorithms` lists them.")
    ] = None,
    iterations: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Operations of each algorithm, interleaved.")
    ] = None,
    warmup: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Operations before those, verified but not counted.")
    ] = None,
    seed: Annotated[str | None, typer.Option(metavar="NUMBER", help="Of the data and of every injected fault.")] = None,
    input_file: Annotated[
        str | None, typer.Option("--input", metavar="FILE", help="A file to split over the ranks.")
    ] = None,
    trees: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Multicast trees that share the chunks (subgroups).")
    ] = None,
    chains: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Roots that multicast at once; default: all.")
    ] = None,
    send_batch: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Chunks that a root sends at a time.")
    ] = None,
    rq_depth: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Receive queue depth (staging slots) of every host.")
    ] = None,
    cutoff: Annotated[
        str | None, typer.Option(metavar="KIND", help="End of the fast path: inactivity or deadline.")
    ] = None,
    loss: Annotated[str | None, typer.Option(metavar="PERCENT", help="Loss at every receiver, like 1%.")] = None,
    reorder: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Packets held back behind later ones, like 5%.")
    ] = None,
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
    delay: Annotated[
        str | None, typer.Option(metavar="TIME", help="Delay of every link, like 50us (needs netem).")
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="PACKETS", help="Packets that every link's queue holds.")] = None,
    capture: Annotated[str | None, typer.Option(metavar="LIST", help="Hosts and links to capture: h1,e00-a00.")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the result folder.")] = None,
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for results.")] = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No moving lines, no colours.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved scenario as YAML and stop.")] = False,
) -> None:
    """Described by :data:`RUN_HELP`."""
    given = {
        "topology": topo, "rate_bps": bw, "scale": scale, "size_bytes": size, "mtu": mtu, "algorithms": algorithm,
        "iterations": iterations, "warmup": warmup, "seed": seed, "input": input_file, "trees": trees, "chains": chains,
        "send_batch": send_batch, "rq_depth": rq_depth, "cutoff": cutoff, "loss": loss, "reorder": reorder,
        "duplicate": duplicate, "corrupt": corrupt, "link_delay_ns": delay, "queue_packets": queue,
        "capture": capture, "name": name, "impairments": impair or None,
    }  # fmt: skip
    resolved = _scenario(scenario, {key: value for key, value in given.items() if value is not None})
    if dry_run:
        _print_yaml(resolved)
        return
    raise typer.Exit(_run(resolved, output, as_json=as_json, plain=plain or as_json))


def _scenario(file: Path | None, given: dict[str, Any]) -> Scenario:
    from experiments.inputs import parse_impairment, resolve

    if "impairments" in given:
        given["impairments"] = [parse_impairment(text) for text in given["impairments"]]
    resolved = resolve(file, given)
    resolved.check_memory(_available_memory())
    return resolved


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def _print_yaml(scenario: Scenario) -> None:
    import yaml

    sys.stdout.write(yaml.safe_dump(json.loads(scenario.model_dump_json()), sort_keys=False))


def _platform(scenario: Scenario) -> Platform:
    """What this machine offers; :class:`EnvironmentMissing` where that does not do for ``scenario``."""
    from topo.probe import probe

    platform = probe()
    if platform.blockers:
        raise EnvironmentMissing(_cure(platform.blockers))
    if scenario.shaped_delay_ns and platform.delay is None:
        raise EnvironmentMissing(
            f"--delay {format_time(scenario.link_delay_ns)}: this kernel has no netem; leave it out, "
            "or delay packets at endpoints, like --impair delay:rx::100%"
        )
    return platform


def _cure(missing: Sequence[Missing]) -> str:
    """All that is missing, and how to get it, in one line."""
    lacking = ", ".join(f"{entry.what} ({entry.purpose})" for entry in missing)
    sources = list(dict.fromkeys(entry.package for entry in missing))
    packages = [source for source in sources if " " not in source]
    others = [source for source in sources if " " in source]
    cures = [f"apt-get install {' '.join(packages)}"] if packages else []
    cures += [f"get {' and '.join(others)}"] if others else []
    return f"missing: {lacking}; {', '.join(cures)}"


def _run(scenario: Scenario, output: Path, *, as_json: bool, plain: bool) -> int:
    if os.geteuid() != 0:
        raise UserError("run: network namespaces need root; run it as root or with sudo")
    from experiments.folder import Owner, ResultFolder
    from experiments.ledger import Ledger
    from experiments.sandbox import run_in_sandbox

    platform = _platform(scenario)
    assert scenario.name is not None
    folder = ResultFolder.create(output, scenario.name, datetime.now(UTC), Owner.calling(os.environ))
    ledger = Ledger()
    try:
        with ledger.open_run() as live:
            settings = live.raise_sysctls(USERSPACE_SETTINGS) if platform.datapath == "user" else {}
            rundir = ledger.root / live.name
            return run_in_sandbox(
                lambda: _inside(scenario, folder, rundir, platform, settings, as_json=as_json, plain=plain),
                rundir,
                live.record_child,
            )
    finally:
        folder.hand_over()
        folder.discard_unused()


def _inside(
    scenario: Scenario,
    folder: Any,
    rundir: Path,
    platform: Platform,
    settings: dict[str, int],
    *,
    as_json: bool,
    plain: bool,
) -> int:
    from experiments import runner, ui

    progress = ui.make_progress(sys.stderr if as_json else sys.stdout, plain=plain)
    try:
        summary = runner.run(scenario, folder, rundir, platform, settings, progress)
    finally:
        progress.close()
    if as_json:
        sys.stdout.write(summary.to_json())
    else:
        ui.print_summary(summary, folder.path, plain=plain)
    for result in summary.runs:
        if result.error:
            raise ExperimentFailed(f"{result.algorithm}, iteration {result.iteration}: {result.error}")
    return 0


@app.command(short_help="Print what is found, used and missing.")
def doctor(*, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Print what this machine has, what will be used, and what is missing with the package that brings it."""
    from topo.probe import probe

    platform = probe()
    if as_json:
        plain = asdict(platform) | {"blockers": [entry.what for entry in platform.blockers]}
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _findings(platform)))
    if platform.blockers:
        raise typer.Exit(EnvironmentMissing.exit_code)


def _findings(platform: Platform) -> Iterator[str]:
    works = {True: "works", False: "not here", None: "not tried"}
    for name, version in platform.versions.items():
        yield f"found: {name} {version}"
    for feature, state in platform.features.items():
        yield f"kernel feature {feature}: {works[state]}"
    for why in platform.untried:
        yield f"not tried: {why}"
    yield f"used: Open vSwitch's {'kernel' if platform.datapath == 'kernel' else 'userspace'} datapath"
    yield "used: HTB for link rates"
    yield f"used: {platform.delay or 'endpoints (this kernel has no netem)'} for delays"
    yield "used: endpoints for loss, reordering, duplication, corruption"
    for entry in platform.missing:
        yield f"missing: {entry}"
    yield "not ready: " + _cure(platform.blockers) if platform.blockers else "ready"


@app.command(short_help="Undo what killed runs left behind.")
def clean() -> None:
    """Undo what killed runs left behind: sysctls and run directories. Live runs and foreign things are left alone."""
    from experiments.ledger import Ledger

    ledger = Ledger()
    try:
        done, live = ledger.clean()
    except PermissionError:
        raise UserError(f"clean: {ledger.root} belongs to root; run it as root or with sudo") from None
    for line in done or ["nothing to clean"]:
        sys.stdout.write(f"{line}\n")
    if live:
        sys.stdout.write(f"{live} live runs left alone\n")


@app.command(short_help="List the topologies.")
def topologies() -> None:
    """List the topologies and their parameters, with the defaults."""
    from topo.registry import topologies as known

    for entry in known().values():
        text = ",".join([entry.name, *(f"{key}={default}" for key, default in entry.parameters.items())])
        sys.stdout.write(f"{text:<36} {entry.summary}\n")


@app.command()
def algorithms() -> None:
    """List the collective algorithms."""
    from endpoints.collectives.registry import collectives

    for entry in collectives().values():
        sys.stdout.write(f"{entry.name:<20} {entry.kind:<10} {entry.summary}\n")


@app.command()
def impairments() -> None:
    """List the kinds of fault that --impair injects."""
    from endpoints.impairments.registry import impairments as known

    for entry in known().values():
        sys.stdout.write(f"{entry.name:<20} {entry.summary}\n")


def main() -> None:
    """The console command: every error is one line and an exit code."""

    def action() -> int:
        try:
            return app(sys.argv[1:] or ["--help"], prog_name="treecast", standalone_mode=False) or 0
        except TyperException as problem:
            raise UserError(f"{problem.format_message()} (see treecast --help)") from None

    sys.exit(exit_code_of(action))


if __name__ == "__main__":
    main()
