"""The ways in which a run's faults are carried out, each made from the parts of the run that it acts on."""

from __future__ import annotations

from experiments.controller_process import ControllerProcess
from experiments.errors import EnvironmentMissing
from experiments.failures import Failures
from experiments.faults.endpoint_faults import EndpointFaults
from experiments.faults.failure_faults import FailureFaults
from experiments.faults.fault import Fault
from experiments.faults.link_faults import LinkFaults, refusal
from experiments.faults.mechanism import Mechanism
from experiments.link_spec import link_spec
from experiments.ranks import Ranks
from experiments.scenario import Scenario
from topo.impairments.links import LinkImpairments
from topo.impairments.port import features_of
from topo.ovs import PrivateOvs
from topo.platform import Platform


def check_faults(scenario: Scenario, platform: Platform) -> None:
    """:class:`EnvironmentMissing` for the first fault of the timeline that this machine cannot carry out."""
    features, spec = features_of(platform.features.items()), link_spec(scenario)
    for step in scenario.timeline:
        fault = step.what
        if isinstance(fault, Fault) and (why := refusal(fault, scenario.fabric, spec, features)) is not None:
            raise EnvironmentMissing(f"fault {str(fault)!r}: {why}")


def mechanisms(
    scenario: Scenario, links: LinkImpairments, ovs: PrivateOvs, controller: ControllerProcess, ranks: Ranks
) -> tuple[Mechanism, ...]:
    """All of them."""
    rank = {host.name: number for number, host in enumerate(scenario.by_rank)}
    processes, controls = ranks.processes, ranks.controls
    failures = Failures(scenario.fabric, ovs, controller, {name: processes[number] for name, number in rank.items()})
    return (
        EndpointFaults(rank, {name: controls[number] for name, number in rank.items()}),
        FailureFaults(failures),
        LinkFaults(links, scenario.fabric),
    )
