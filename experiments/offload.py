"""What a scenario asks of the hosts' NICs: whether it can be had, and what follows where nothing is said. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from endpoints.collectives.registry import Collective
from endpoints.nic import budget
from endpoints.nic.stripes import stripes
from experiments.errors import UserError
from topo.fabric import Fabric

if TYPE_CHECKING:
    from experiments.scenario import Scenario

WITHOUT = {"workers": 1, "nic_memory_bytes": None, "nic_cpus": (), "nic_limit": None}
"""What a scenario says of NICs that has none."""


def trees_for(workers: int, fabric: Fabric, most: int) -> int:
    """Multicast trees for so many workers of every NIC: as many for each, and for each core switch, ``most`` at most.

    Each worker's stripe then goes over all cores alike. One worker has the one tree that a host has.
    """
    if workers == 1:
        return 1
    top = max(switch.tier for switch in fabric.switches)
    even = math.lcm(workers, sum(switch.tier == top for switch in fabric.switches))
    return even if even <= most else most // workers * workers


def check(scenario: Scenario) -> None:
    """:class:`UserError` for what cannot be had: workers and memory are a NIC's, each worker has trees of its own."""
    if scenario.offload == "none":
        for field in (name for name, value in WITHOUT.items() if getattr(scenario, name) != value):
            raise UserError(f"{field}: without a NIC there are none; use offload nic")
        return
    workers, trees = scenario.workers, scenario.trees
    if workers > trees:
        raise UserError(
            f"workers {workers}: each needs a multicast tree of its own and trees is {trees}; "
            f"use trees {workers} or leave trees out"
        )
    for entry in scenario.collectives:
        if isinstance(entry, Collective) and entry.multicast:
            _check_memory(scenario, entry)


def _check_memory(scenario: Scenario, entry: Collective) -> None:
    """Not even a round of one chunk of each block would fit."""
    stripe = max(stop - start for start, stop in stripes(scenario.size_bytes, scenario.mtu, scenario.workers))
    wanted = budget.Collective(scenario.ranks, entry.roots(scenario.ranks), stripe, scenario.mtu, 32 - scenario.op_bits)
    try:
        budget.plan(wanted, scenario.worker_nic)
    except budget.DoesNotFit as problem:
        raise UserError(f"nic_memory_bytes: {entry.name} on one of {scenario.workers} workers: {problem}") from None
