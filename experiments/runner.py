"""One experiment from build to verdict: fabric, controller, proof, endpoints, operations, results. In the sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from controller.dumps import DumpError, parse_rules
from controller.live import Live
from controller.plan import Plan, make_plan
from controller.prove import compare, prove
from endpoints.collectives.registry import Algorithm, Collective
from endpoints.io.process import RankResult
from experiments import judge, theory
from experiments.buffers import Buffers
from experiments.capture_process import captures
from experiments.communicators import communicator
from experiments.controller_process import ControllerProcess
from experiments.data import Data
from experiments.errors import EnvironmentMissing, ExperimentFailed
from experiments.external.registry import External
from experiments.external.site import Place
from experiments.fidelity.observe import observe
from experiments.fidelity.sampler import Sampler
from experiments.fidelity.verdict import assess, combine
from experiments.folder import ResultFolder
from experiments.guests import Guests, excuses
from experiments.injection import hit_lines, impairments
from experiments.link_theory import LinkTheory
from experiments.port_reader import PortReader
from experiments.port_traffic import Moved
from experiments.ranks import Ranks
from experiments.results import SUMMARY, PlatformInfo, Run, Skipped, Summary
from experiments.scenario import Scenario
from experiments.ui import Progress
from experiments.watch import Seen, Watch
from topo.fabric import Fabric, interface, link_key
from topo.mininet_net import BuildError, EmulatedFabric
from topo.ovs import OvsError, PrivateOvs
from topo.platform import Platform
from topo.shaping import LinkSpec
from topo.tc import BatchError

PROGRAM_TIMEOUT_S = 60.0
CONTROL_HEADROOM = 64
"""Bytes that the longest RoCE frame has beyond its payload, Ethernet header aside."""
SMALLEST_MTU = 1500


def run(
    scenario: Scenario,
    folder: ResultFolder,
    rundir: Path,
    platform: Platform,
    settings: Mapping[str, int],
    progress: Progress,
) -> Summary:
    """Do everything; the summary is in the folder, too. ``settings`` are the kernel's, as raised for the run.

    Raises one of ``experiments.errors``.
    """
    try:
        with _experiment(scenario, folder, rundir, platform, progress) as experiment:
            runs = list(experiment.operations())
            skipped = [Skipped(algorithm=name, reason=why) for name, why in experiment.skipped.items()]
    except (OvsError, BuildError, BatchError) as problem:
        raise ExperimentFailed(str(problem)) from problem
    info = PlatformInfo(
        kernel=platform.versions.get("kernel", ""),
        datapath=platform.datapath,
        impairments=dict.fromkeys(sorted({spec.kind for spec in impairments(scenario)}), "endpoint"),
        versions=dict(platform.versions),
        sysctls=dict(settings),
    )
    summary = Summary(
        scenario=scenario,
        platform=info,
        hosts=[host.name for host in scenario.by_rank],
        runs=runs,
        skipped=skipped,
        fidelity=combine(run.fidelity for run in runs),
    )
    folder.write(SUMMARY, summary.to_json())
    folder.publish()
    return summary


@contextmanager
def _experiment(
    scenario: Scenario, folder: ResultFolder, rundir: Path, platform: Platform, progress: Progress
) -> Iterator[_Experiment]:
    """Everything up, proven and ready to run; everything down again behind it."""
    fabric = scenario.fabric
    comm = communicator(
        fabric,
        mtu=scenario.mtu,
        rate_bps=scenario.link_rate_bps,
        trees=scenario.trees,
        op_bits=scenario.op_bits,
        hosts=scenario.by_rank,
    )
    spec = LinkSpec(
        rate_bps=scenario.link_rate_bps,
        delay_us=scenario.shaped_delay_ns // 1000,
        queue_packets=scenario.queue_packets,
        mtu=max(SMALLEST_MTU, scenario.mtu + CONTROL_HEADROOM),
    )
    if spec.delay_us and platform.delay is None:
        raise EnvironmentMissing("link delay: this kernel has no netem; leave the delay out, or delay at endpoints")
    with ExitStack() as stack:
        buffers = Buffers(rundir / "buffers", comm.size)
        ranks = stack.enter_context(Ranks(scenario, comm, rundir, buffers))  # forks, so first
        progress.phase("build", None)
        ovs = PrivateOvs(rundir / "ovs", platform.datapath_type)
        stack.callback(_keep_logs, rundir, folder)
        stack.enter_context(ovs)
        controller = stack.enter_context(ControllerProcess(fabric, rundir, folder.logs / "controller.log"))
        net = stack.enter_context(EmulatedFabric(fabric, spec, ovs, controller.port, progress.advance))
        progress.phase("join", None)
        controller.wait_for(
            lambda event: event["event"] == "switch" and event["connected"] == event["total"],
            PROGRAM_TIMEOUT_S,
            "to connect every switch",
        )
        ranks.enter(
            [f"/proc/{net.host_pid(host.name)}/ns/net" for host in scenario.by_rank],
            [interface(host.name, 0) for host in scenario.by_rank],
            impairments(scenario),
        )
        plan = _programmed(controller, fabric, [str(IPv4Address(group.ip)) for group in comm.groups])
        progress.phase("prove", len(fabric.switches))
        _prove(fabric, ovs, plan, progress)
        running = stack.enter_context(captures(scenario, net, folder))

        sampler = Sampler(ovs.pids["ovs-vswitchd"], ranks.pids)

        def check() -> None:
            """What the endpoints would not miss, or only after their patience and as somebody else's fault."""
            ovs.check()
            controller.check()
            for capture in running:
                capture.check()
            sampler.look()

        places = [
            Place(host.name, host.ip, interface(host.name, 0), net.host_pid(host.name)) for host in scenario.by_rank
        ]
        guests = Guests(
            places,
            rate_bps=spec.rate_bps,
            mtu=spec.mtu,
            rundir=rundir,
            logs=folder.logs,
            look=check,
            excused=excuses(scenario, platform),
        )
        stack.enter_context(guests)
        yield _Experiment(
            scenario,
            folder,
            progress,
            ranks,
            guests,
            buffers,
            check,
            Watch(fabric, PortReader(net, controller), sampler),
            plan,
            platform,
        )


def _keep_logs(rundir: Path, folder: ResultFolder) -> None:
    for log in (rundir / "ovs").glob("*.log"):
        shutil.copy(log, folder.logs)


def _programmed(controller: ControllerProcess, fabric: Fabric, groups: Sequence[str]) -> Plan:
    """The plan that every switch has confirmed, with every host in every tree."""
    event = controller.wait_for(
        lambda e: (
            e["event"] == "programmed" and all(len(e["groups"].get(group, ())) == len(fabric.hosts) for group in groups)
        ),
        PROGRAM_TIMEOUT_S,
        "to program the multicast trees of all hosts",
    )
    down = frozenset((node, port) for node, port in event["down"])
    return make_plan(Live(fabric, down), event["groups"], event["slots"])


def _prove(fabric: Fabric, ovs: PrivateOvs, plan: Plan, progress: Progress) -> None:
    """Read back what the switches hold, compare it with the plan, and prove it, before any traffic."""
    found = {}
    for switch in fabric.switches:
        try:
            found[switch.name] = parse_rules(ovs.dump_flows(switch.name), ovs.dump_groups(switch.name))
        except DumpError as problem:
            raise ExperimentFailed(f"the switches' rules are wrong: {switch.name}: {problem}") from None
        progress.advance(len(found), len(fabric.switches))
    members = {group: set(fabric.host) for group in plan.trees}
    problems = compare(plan.rules, found) or prove(fabric, found, members)
    if problems:
        raise ExperimentFailed(f"the switches' rules are wrong ({len(problems)} problems): {problems[0]}")


class _Experiment:
    """A fabric that is up: runs operations on it."""

    def __init__(
        self,
        scenario: Scenario,
        folder: ResultFolder,
        progress: Progress,
        ranks: Ranks,
        guests: Guests,
        buffers: Buffers,
        check: Callable[[], None],
        watch: Watch,
        plan: Plan,
        platform: Platform,
    ) -> None:
        self._scenario = scenario
        self._folder = folder
        self._progress = progress
        self._ranks = ranks
        self._guests = guests
        self._buffers = buffers
        self._check = check
        self._watch = watch
        self._links = LinkTheory(
            scenario.fabric, tuple(plan.trees.values()), [host.name for host in scenario.by_rank], scenario.mtu
        )
        self._platform = platform
        path = Path(scenario.input) if scenario.input else None
        self._data = Data(scenario.size_bytes, scenario.seed, path)
        self._names = {rank: host.name for rank, host in enumerate(scenario.by_rank)}

    @property
    def skipped(self) -> dict[str, str]:
        """Why an algorithm has been left out, by its name."""
        return self._guests.skipped

    def operations(self) -> Iterator[Run]:
        """Every algorithm, as often as asked; ends after one that failed, since its endpoints are out of step.

        An external program that cannot be started, or fails, is left out from then on, and the others go on. Warm-up
        operations are verified like the others and then forgotten, unless they fail.
        """
        scenario = self._scenario
        for iteration in range(1 - scenario.warmup, scenario.iterations + 1):
            for algorithm in scenario.collectives:
                label = f"{algorithm.name} {iteration}/{scenario.iterations}"
                if iteration < 1:
                    label = f"{algorithm.name} warm-up"
                if isinstance(algorithm, External):
                    self._progress.phase(label, None)
                    yield from self._external(algorithm, iteration)
                    continue
                result = self._operation(algorithm, max(iteration, 1), label)
                if iteration >= 1 or result.error is not None:
                    yield result
                if result.error is not None:
                    return

    def _external(self, algorithm: External, iteration: int) -> Iterator[Run]:
        """One operation of an external program, started if need be; nothing if it is left out, or warms up well."""
        if not self._guests.ready(algorithm):
            return
        self._buffers.prepare(algorithm, self._data)
        (measured, error), seen = self._watch.over(
            lambda: self._guests.run(algorithm, self._buffers, self._limit(algorithm))
        )
        self._check()
        self._progress.phase("verify", None)
        wrong = 0 if error else self._buffers.wrong_bytes(algorithm, self._data)
        error = error or _complaint(wrong)
        if iteration >= 1 or error is not None:
            result = self._record(
                algorithm,
                max(iteration, 1),
                seen.moved,
                measured.seconds if measured else None,
                error=error,
                wrong_bytes=wrong,
                cpu={"endpoints": measured.cpu_seconds} if measured else {},
                extra_seconds=measured.extra_seconds if measured else {},
            )
            yield self._judged(result, (), seen)

    def _operation(self, algorithm: Collective, iteration: int, label: str) -> Run:
        def begun() -> list[RankResult]:
            self._progress.phase(label, None)  # now, when the programs that read counters have come and gone
            return self._ranks.run(algorithm, self._data, self._told)

        reports, seen = self._watch.over(begun)
        self._check()
        error = judge.diagnosis(reports, self._names)
        self._progress.phase("verify", None)
        wrong = 0 if error else self._buffers.wrong_bytes(algorithm, self._data)
        error = error or _complaint(wrong)
        if hits := hit_lines(reports):
            self._folder.write(f"injected-{algorithm.name}-{iteration}.jsonl", hits)
        result = self._result(algorithm, iteration, reports, seen.moved, wrong, error)
        return self._judged(result, reports, seen)

    def _judged(self, result: Run, reports: Sequence[RankResult], seen: Seen) -> Run:
        """The result with the verdict on whether it was true."""
        moved = seen.moved
        observed = observe(
            self._scenario,
            result,
            reports,
            seen.watched,
            moved.interfaces,
            self._platform.datapath,
            quiet=moved.quiet,
        )
        return result.model_copy(update={"fidelity": assess(observed)})

    def _told(self, phase: str, received: int, chunks: int) -> None:
        self._check()
        self._progress.note(phase)
        self._progress.advance(min(received, chunks), chunks)

    def _result(
        self,
        algorithm: Collective,
        iteration: int,
        reports: Sequence[RankResult],
        moved: Moved,
        wrong: int,
        error: str | None,
    ) -> Run:
        scenario = self._scenario
        seconds = judge.seconds(reports)
        roots = algorithm.roots(scenario.ranks)
        expected = -(-scenario.size_bytes // scenario.mtu) * roots * (scenario.ranks - 1)
        loads = self._links.loads(algorithm, scenario.size_bytes)
        return self._record(
            algorithm,
            iteration,
            moved,
            seconds,
            wrong_bytes=wrong,
            error=error or (None if seconds is not None else "a rank did not finish"),
            phases=judge.phase_seconds(reports),
            packets=judge.packets(reports, expected if algorithm.multicast else None),
            injected=judge.injected(reports),
            link_bytes_theory={link: load.bytes for link, load in loads.items()},
            link_packets_theory={link: load.packets for link, load in loads.items()},
            cpu={"endpoints": sum(report.cpu_seconds for report in reports)},
        )

    def _record(
        self,
        algorithm: Algorithm,
        iteration: int,
        moved: Moved,
        seconds: float | None,
        *,
        error: str | None,
        **found: Any,
    ) -> Run:
        """What is said of every operation, whoever carried it out, and what was ``found`` besides."""
        scenario = self._scenario
        limit = self._limit(algorithm)
        return Run(
            algorithm=algorithm.name,
            iteration=iteration,
            ranks=scenario.ranks,
            bytes_per_rank=scenario.size_bytes,
            verified=error is None,
            error=error,
            seconds=seconds,
            limit_seconds=limit,
            limit_ratio=limit / seconds if seconds else None,
            link_bytes=moved.link_bytes,
            link_packets=moved.link_packets,
            port_mismatches=moved.mismatches,
            host_tx_bytes={
                host.name: moved.link_bytes[link_key(host.name, scenario.fabric.edge_of[host.name])]
                for host in scenario.fabric.hosts
            },
            **found,
        )

    def _limit(self, algorithm: Algorithm) -> float:
        scenario = self._scenario
        return theory.limit_seconds(algorithm.kind, scenario.ranks, scenario.size_bytes, scenario.link_rate_bps)


def _complaint(wrong: int) -> str | None:
    return f"{wrong} bytes are wrong in the ranks' receive buffers" if wrong else None
