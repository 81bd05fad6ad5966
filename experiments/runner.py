"""One experiment from build to verdict: fabric, controller, proof, endpoints, operations, results. In the sandbox."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from controller.dumps import DumpError, parse_rules
from controller.live import Live
from controller.plan import Plan, make_plan
from controller.prove import compare, prove
from experiments.buffers import Buffers
from experiments.capture_process import captures
from experiments.communicators import communicator
from experiments.control_socket import Server
from experiments.controller_process import ControllerProcess, Event
from experiments.errors import EnvironmentMissing, ExperimentFailed
from experiments.external.site import Place
from experiments.faults.book import Book
from experiments.faults.director import Director
from experiments.faults.mechanisms import mechanisms
from experiments.faults.service import answer
from experiments.fidelity.probe import probe
from experiments.fidelity.sampler import Sampler
from experiments.fidelity.verdict import combine
from experiments.folder import ResultFolder
from experiments.guests import Guests, excuses
from experiments.host_groups import HostGroups
from experiments.injection import impairments
from experiments.link_spec import link_spec
from experiments.movement.port_reader import PortReader
from experiments.operations import Operations
from experiments.ranks import Ranks
from experiments.results import SUMMARY, PlatformInfo, Run, Skipped, Summary
from experiments.scenario import Scenario
from experiments.ui import Progress
from experiments.watch import Watch
from topo.fabric import Fabric, interface
from topo.impairments.links import LinkImpairments
from topo.impairments.port import features_of
from topo.mininet_net import BuildError, EmulatedFabric
from topo.ovs import OvsError, PrivateOvs
from topo.platform import Platform
from topo.tc import BatchError

PROGRAM_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A fabric that is up and proven, with everything that acts on it."""

    scenario: Scenario
    folder: ResultFolder
    net: EmulatedFabric
    controller: ControllerProcess
    operations: Operations
    director: Director
    ranks: Ranks
    groups: HostGroups
    buffers: Buffers
    progress: Progress
    check: Callable[[], None]
    """Raises where a part of the program has ended, which endpoints would take for somebody else's fault."""

    @property
    def plan(self) -> Plan:
        """The plan that is in force at the switches, as far as the controller's reports have been read."""
        return _plan(self.scenario.fabric, self.controller.programmed)


Conduct = Callable[[Stage], Iterable[Run]]


def as_asked(stage: Stage) -> Iterator[Run]:
    """The scenario's operations, one after the other."""
    yield from stage.operations.operations()


def run(
    scenario: Scenario,
    folder: ResultFolder,
    rundir: Path,
    platform: Platform,
    settings: Mapping[str, int],
    progress: Progress,
    listener: socket.socket,
    conduct: Conduct,
) -> Summary:
    """Do everything; the summary is in the folder, too. ``settings`` are the kernel's, as raised for the run.

    ``conduct`` decides which operations are run; requests that come over ``listener`` are served meanwhile.

    Raises one of ``experiments.errors``.
    """
    try:
        with _experiment(scenario, folder, rundir, platform, progress) as stage:
            director = stage.director
            with Server(listener, lambda line: answer(line, director, scenario.fabric)):
                runs = list(conduct(stage))
            director.finish()
            faults = director.rows()
            accounting = stage.groups.mechanism
            skipped = [Skipped(algorithm=name, reason=why) for name, why in stage.operations.skipped.items()]
    except (OvsError, BuildError, BatchError) as problem:
        raise ExperimentFailed(str(problem)) from problem
    info = PlatformInfo(
        kernel=platform.versions.get("kernel", ""),
        datapath=platform.datapath,
        impairments=dict.fromkeys(sorted({spec.kind for spec in impairments(scenario)}), "endpoint"),
        versions=dict(platform.versions),
        sysctls=dict(settings),
        accounting=accounting,
    )
    summary = Summary(
        scenario=scenario,
        platform=info,
        hosts=[host.name for host in scenario.by_rank],
        probe_bps=stage.operations.probe_bps,
        runs=runs,
        skipped=skipped,
        faults=faults,
        fidelity=combine(run.fidelity for run in runs),
    )
    folder.write(SUMMARY, summary.to_json())
    folder.publish()
    return summary


@contextmanager
def _experiment(
    scenario: Scenario, folder: ResultFolder, rundir: Path, platform: Platform, progress: Progress
) -> Iterator[Stage]:
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
    spec = link_spec(scenario)
    if spec.delay_us and platform.delay is None:
        raise EnvironmentMissing("link delay: this kernel has no netem; leave the delay out, or delay at endpoints")
    with ExitStack() as stack:
        buffers = Buffers(rundir / "buffers")
        ranks = stack.enter_context(Ranks(scenario, comm, rundir, buffers))  # forks, so first
        progress.phase("build", None)
        ovs = PrivateOvs(rundir / "ovs", platform.datapath_type)
        stack.callback(_keep_logs, rundir, folder)
        stack.enter_context(ovs)
        controller = stack.enter_context(
            ControllerProcess(fabric, rundir, folder.logs / "controller.log", spec.drain_ms)
        )
        net = stack.enter_context(EmulatedFabric(fabric, spec, ovs, controller.port, progress.advance))
        progress.phase("join", None)
        controller.wait_for(
            lambda event: event["event"] == "switch" and event["connected"] == event["total"],
            PROGRAM_TIMEOUT_S,
            "to connect every switch",
        )
        groups = HostGroups(rundir.name)
        for rank, host in enumerate(scenario.by_rank):
            first, *others = ranks.processes[rank]
            groups.place(host.name, [first], others)
        if scenario.nic_cpus:
            groups.pin_nics(scenario.nic_cpus)
        if scenario.nic_limit is not None:
            groups.limit_nics(scenario.nic_limit)
        ranks.enter(
            [f"/proc/{net.host_pid(host.name)}/ns/net" for host in scenario.by_rank],
            [interface(host.name, 0) for host in scenario.by_rank],
            impairments(scenario),
        )
        plan = _programmed(controller, fabric, [str(IPv4Address(group.ip)) for group in comm.groups])
        progress.phase("prove", len(fabric.switches))
        _prove(fabric, ovs, plan, progress)
        ovs.supervise()
        controller.supervise()
        progress.phase("probe links", None)
        probe_bps = probe(fabric, spec, net.namespace_of)
        running = stack.enter_context(captures(scenario, net, folder))

        features = features_of(platform.features.items())
        links = LinkImpairments(fabric, spec, features, net.namespace_of, scenario.seed)
        uplinks = [net.host_pid(host.name) for host in fabric.hosts]
        sampler = Sampler(lambda: ovs.pids["ovs-vswitchd"], ranks.engines, links.injected, uplinks)

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
        ways = mechanisms(scenario, links, ovs, controller, ranks)
        faults = stack.enter_context(Director(Book(scenario.timeline), ways))
        operations = Operations(
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
            faults,
            groups,
            probe_bps,
        )
        yield Stage(scenario, folder, net, controller, operations, faults, ranks, groups, buffers, progress, check)


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
    return _plan(fabric, event)


def _plan(fabric: Fabric, event: Event) -> Plan:
    """The plan of which the controller reports that it is programmed."""
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
