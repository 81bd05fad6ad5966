"""The command ``treecast``. Heavy imports wait until a command needs them, so that ``--help`` is quick."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from experiments.errors import EnvironmentMissing, ExperimentFailed, UserError, complain, exit_code_of

if TYPE_CHECKING:
    from experiments.scenario import Scenario
    from topo.platform import Platform

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
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Treecast emulates multicast collectives on fat trees of Open vSwitch, with faults, on one machine.",
)


@app.command(help=RUN_HELP)
def run(
    scenario: Annotated[Path | None, typer.Argument(help="A scenario (YAML), or a summary.json to repeat.")] = None,
    topo: Annotated[str | None, typer.Option(help="Topology, like fattree,k=4 or leafspine,leaves=4,spines=2,hosts=4.")] = None,
    bw: Annotated[str | None, typer.Option(help="Rate of every link: 50M, 56G; a bare number is Mbit/s.")] = None,
    scale: Annotated[float | None, typer.Option(help="Links are shaped at bw / scale: --bw 56G --scale 1000.")] = None,
    size: Annotated[str | None, typer.Option(help="Bytes per rank: 1MiB, 64KiB, 1000.")] = None,
    mtu: Annotated[int | None, typer.Option(help="RoCE path MTU: 256, 512, 1024, 2048, 4096.")] = None,
    algorithm: Annotated[str | None, typer.Option(help="Comma-separated; `treecast algorithms` lists them.")] = None,
    iterations: Annotated[int | None, typer.Option(help="Operations of each algorithm, interleaved.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Operations before those, verified but not counted.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the data and of every injected fault.")] = None,
    input_file: Annotated[str | None, typer.Option("--input", help="A file to split over the ranks.")] = None,
    trees: Annotated[int | None, typer.Option(help="Multicast trees that share the chunks (subgroups).")] = None,
    chains: Annotated[int | None, typer.Option(help="Roots that multicast at once; default: all.")] = None,
    send_batch: Annotated[int | None, typer.Option(help="Chunks that a root sends at a time.")] = None,
    rq_depth: Annotated[int | None, typer.Option(help="Receive queue depth (staging slots) of every host.")] = None,
    cutoff: Annotated[str | None, typer.Option(help="End of the fast path: inactivity or deadline.")] = None,
    loss: Annotated[str | None, typer.Option(help="Loss at every receiver, like 1%.")] = None,
    reorder: Annotated[str | None, typer.Option(help="Packets held back behind later ones, like 5%.")] = None,
    duplicate: Annotated[str | None, typer.Option(help="Packets that come twice, like 1%.")] = None,
    corrupt: Annotated[str | None, typer.Option(help="Packets with a bit inverted, like 0.1%.")] = None,
    impair: Annotated[
        list[str] | None,
        typer.Option(help="KIND:rx|tx:HOSTS:PROBABILITY or psn=LIST, like drop:rx:h3:psn=17,40-60. Repeatable."),
    ] = None,
    delay: Annotated[str | None, typer.Option(help="Delay of every link, like 50us (needs netem).")] = None,
    queue: Annotated[int | None, typer.Option(help="Packets that every link's queue holds.")] = None,
    capture: Annotated[str | None, typer.Option(help="Hosts and links to capture: h1,e00-a00.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the result folder.")] = None,
    output: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    plain: Annotated[bool, typer.Option(help="No moving lines, no colours.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Print the resolved scenario as YAML and stop.")] = False,
) -> None:
    given = {
        "topology": topo, "rate_bps": bw, "scale": scale, "size_bytes": size, "mtu": mtu, "algorithms": algorithm,
        "iterations": iterations, "warmup": warmup, "seed": seed, "input": input_file, "trees": trees, "chains": chains,
        "send_batch": send_batch, "rq_depth": rq_depth, "cutoff": cutoff, "loss": loss, "reorder": reorder,
        "duplicate": duplicate, "corrupt": corrupt, "link_delay_ns": delay, "queue_packets": queue,
        "capture": capture, "name": name, "impairments": [_impairment(text) for text in impair] if impair else None,
    }  # fmt: skip
    resolved = _scenario(scenario, {key: value for key, value in given.items() if value is not None})
    if dry_run:
        _print_yaml(resolved)
        return
    raise typer.Exit(_run(resolved, output, as_json=as_json, plain=plain or as_json))


def _impairment(text: str) -> dict[str, Any]:
    from endpoints.impairments.registry import impairments  # noqa: PLC0415
    from endpoints.impairments.spec import parse_psns  # noqa: PLC0415

    kind, direction, hosts, what = [*text.split(":"), "", "", "", ""][:4]
    if kind not in impairments() or direction not in ("rx", "tx") or not what:
        known = ", ".join(impairments())
        raise UserError(f"impair {text!r}: write KIND:rx|tx:HOSTS:PROBABILITY or psn=LIST with KIND one of {known}")
    entry: dict[str, Any] = {"kind": kind, "direction": direction, "hosts": hosts}
    if not what.startswith("psn="):
        return entry | {"probability": what}
    try:
        ranges = parse_psns(what[4:])
    except ValueError as problem:
        raise UserError(f"impair {text!r}: {problem}") from None
    return entry | {"psns": [psn for r in ranges for psn in (range(r[0], r[1] + 1) if isinstance(r, tuple) else [r])]}


def _scenario(file: Path | None, given: dict[str, Any]) -> Scenario:
    from experiments.data import file_size, size_per_rank  # noqa: PLC0415
    from experiments.scenario import Scenario  # noqa: PLC0415

    values = {**_read(file), **given} if file else given
    if values.get("input") and "size_bytes" not in values:
        size = file_size(Path(values["input"]))
        values["size_bytes"] = size
        resolved = Scenario.of(values)
        if any(c.kind == "allgather" for c in resolved.collectives):
            values["size_bytes"] = size_per_rank(size, resolved.ranks)
    elif values.get("input"):
        file_size(Path(values["input"]))
    resolved = Scenario.of(values)
    resolved.check_memory(_available_memory())
    return resolved


def _read(file: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415

    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise UserError(f"scenario {str(file)!r}: {problem}") from None
    if not isinstance(values, dict):
        raise UserError(f"scenario {str(file)!r}: holds no keys and values")
    values = values.get("scenario", values)
    return {key: value for key, value in values.items() if key != "shaped_bps"}


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def _print_yaml(scenario: Scenario) -> None:
    import yaml  # noqa: PLC0415

    sys.stdout.write(yaml.safe_dump(json.loads(scenario.model_dump_json()), sort_keys=False))


def _platform() -> Platform:
    from topo.probe import probe  # noqa: PLC0415

    platform = probe()
    for blocker in platform.blockers:
        raise EnvironmentMissing(f"{blocker.name} is missing: {blocker.purpose}", blocker.package)
    return platform


def _run(scenario: Scenario, output: Path, *, as_json: bool, plain: bool) -> int:
    if os.geteuid() != 0:
        raise UserError("run: network namespaces need root; run it with sudo")
    from experiments.folder import Owner, ResultFolder  # noqa: PLC0415
    from experiments.ledger import Ledger  # noqa: PLC0415
    from experiments.sandbox import run_in_sandbox  # noqa: PLC0415

    platform = _platform()
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
    from experiments import runner, ui  # noqa: PLC0415

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


@app.command()
def doctor() -> None:
    """Print what this machine has, what will be used, and what is missing with the package that brings it."""
    from topo.probe import probe  # noqa: PLC0415

    platform = probe()
    lines = [f"{name}: {version}" for name, version in platform.versions.items()]
    lines += [f"datapath: {platform.datapath}", f"link delay: {platform.delay or 'none (delay at endpoints)'}"]
    states = {True: "works", False: "not here", None: "not tried"}
    lines += [f"kernel {name}: {states[works]}" for name, works in platform.features.items()]
    lines += [f"not tried: {why}" for why in platform.untried]
    lines += [f"missing: {missing}" for missing in platform.missing]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if platform.blockers:
        raise typer.Exit(EnvironmentMissing.exit_code)


@app.command()
def clean() -> None:
    """Undo what killed runs left behind: sysctls and run directories. Live runs and foreign things are left alone."""
    from experiments.ledger import Ledger  # noqa: PLC0415

    done, live = Ledger().clean()
    for line in done or ["nothing to clean"]:
        sys.stdout.write(f"{line}\n")
    if live:
        sys.stdout.write(f"{live} live runs left alone\n")


@app.command()
def topologies() -> None:
    """List the topologies and their parameters."""
    from topo.registry import topologies as known  # noqa: PLC0415

    for name in known():
        sys.stdout.write(f"{name}\n")


@app.command()
def algorithms() -> None:
    """List the collective algorithms."""
    from endpoints.collectives.registry import collectives  # noqa: PLC0415

    for entry in collectives().values():
        sys.stdout.write(f"{entry.name:<20} {entry.kind:<10} {entry.summary}\n")


def main() -> None:
    """The console command: every error is one line and an exit code."""

    def action() -> int:
        try:
            return app(standalone_mode=False) or 0
        except click.exceptions.NoArgsIsHelpError as shown:
            sys.stderr.write(f"{shown.format_message()}\n")
            return UserError.exit_code
        except click.ClickException as problem:
            complain(" ".join(problem.format_message().split()))
            return UserError.exit_code
        except (click.exceptions.Exit, typer.Exit) as ended:
            return ended.exit_code

    sys.exit(exit_code_of(action))


if __name__ == "__main__":
    main()
