from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from endpoints.collectives.registry import collective, collectives
from endpoints.core.endpoint import Endpoint
from endpoints.core.lifecycle import AFTER_BARRIER_BOUNDS, Lifecycle
from experiments.communicators import communicator
from experiments.patience import Patience
from experiments.scenario import Scenario
from experiments.sim.world import build_world
from tests.sim.scenarios import TEMPLATES

S = 10**9


def operation(scenario: Scenario, name: str, rank: int) -> tuple[Endpoint, Lifecycle]:
    comm = communicator(scenario.fabric, mtu=scenario.mtu, rate_bps=scenario.link_rate_bps)
    endpoint = Endpoint(comm, rank, scenario.protocol)
    entry = collective(name)
    data = np.zeros(entry.data_bytes(comm.size, scenario.size_bytes) if entry.contributes(rank) else 0, np.uint8)
    buffer = np.zeros(entry.buffer_bytes(comm.size, scenario.size_bytes), np.uint8)
    prepared = endpoint.prepare(partial(entry.make, data=data, buffer=buffer))
    assert isinstance(prepared, Lifecycle)
    return endpoint, prepared


@pytest.mark.parametrize("name", collectives())
@pytest.mark.parametrize(
    "changed",
    [{}, {"size_bytes": 0}, {"rate_bps": 10**6}, {"chains": 3, "rate_bps": 10**6}, {"op_timeout_ns": 60 * S}],
)
def test_no_operation_is_more_patient(name: str, changed: dict[str, Any]) -> None:
    scenario = Scenario.of({"topology": "single,hosts=20", **changed})
    patience = Patience.of(scenario)
    for rank in (0, 1, 19):
        endpoint, prepared = operation(scenario, name, rank)
        bound = prepared._bound()
        waits = bound + prepared._barrier.depth * endpoint.timing.slack_ns + AFTER_BARRIER_BOUNDS * bound
        assert waits <= patience.operation


def test_an_outage_that_counts_is_shorter_than_the_peer_timeout_by_the_patience_with_a_supplier() -> None:
    assert Patience.of(Scenario.of({})).outage == 3 * S
    assert Patience.of(Scenario.of({"peer_timeout_ns": 8 * S})).outage == 6 * S


def test_whoever_waits_for_a_dead_rank_has_given_up_by_then() -> None:
    scenario = Scenario.of({"topology": "single,hosts=3", "size_bytes": 2000, "mtu": 256})
    comm = communicator(scenario.fabric, mtu=scenario.mtu, rate_bps=scenario.link_rate_bps)
    world = build_world(scenario.fabric, comm, TEMPLATES, config=scenario.protocol)
    world.kill(2)
    data = [np.zeros(2000, np.uint8) for _ in range(3)]
    bound = Patience.of(scenario).operation
    outcome = world.run(collective("mcast_allgather"), data, 2000, 10 * bound)
    assert sorted(outcome.failures) == [0, 1]
    assert outcome.seconds * 1e9 <= bound
