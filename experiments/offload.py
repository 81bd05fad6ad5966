"""What a scenario asks of the hosts' NICs: whether it can be had, and what follows where nothing is said. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from endpoints.nic import budget
from endpoints.nic.stripes import stripes
from experiments.errors import UserError
from topo.fabric import Fabric

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


def check_without(said: Mapping[str, object]) -> None:
    """:class:`UserError` for what is said of NICs where there are none."""
    for field in (name for name, value in WITHOUT.items() if said[name] != value):
        raise UserError(f"{field}: without a NIC there are none; use offload nic")


def check_workers(workers: int, trees: int) -> None:
    """:class:`UserError` for a worker without a tree of its own."""
    if workers > trees:
        raise UserError(
            f"workers {workers}: each needs a multicast tree of its own and trees is {trees}; "
            f"use trees {workers} or leave trees out"
        )


def check_memory(name: str, wanted: budget.Collective, workers: int, nic: budget.Nic) -> None:
    """:class:`UserError` if not even a round of one chunk of each block fits into a worker's memory, ``nic``."""
    stripe = max(stop - start for start, stop in stripes(wanted.block_bytes, wanted.mtu, workers))
    try:
        budget.plan(replace(wanted, block_bytes=stripe), nic)
    except budget.DoesNotFit as problem:
        raise UserError(f"nic_memory_bytes: {name} on one of {workers} workers: {problem}") from None
