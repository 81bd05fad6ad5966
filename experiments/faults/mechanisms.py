"""The ways in which a run's faults are carried out, each made from the parts of the run that it acts on."""

from __future__ import annotations

from experiments.controller_process import ControllerProcess
from experiments.failures import Failures
from experiments.faults.endpoint_faults import EndpointFaults
from experiments.faults.failure_faults import FailureFaults
from experiments.faults.mechanism import Mechanism
from experiments.ranks import Ranks
from experiments.scenario import Scenario
from topo.ovs import PrivateOvs


def mechanisms(
    scenario: Scenario, ovs: PrivateOvs, controller: ControllerProcess, ranks: Ranks
) -> tuple[Mechanism, ...]:
    """All of them."""
    rank = {host.name: number for number, host in enumerate(scenario.by_rank)}
    pids, controls = ranks.pids, ranks.controls
    failures = Failures(scenario.fabric, ovs, controller, {name: pids[number] for name, number in rank.items()})
    return (
        EndpointFaults(rank, {name: controls[number] for name, number in rank.items()}),
        FailureFaults(failures),
    )
