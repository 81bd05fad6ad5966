"""NICs of several workers in one Allgather: the cores of the fat tree share what they send, and as theory says."""

from __future__ import annotations

from collections import Counter
from math import lcm

import numpy as np
import pytest

from controller.live import Live
from controller.plan import assign_slots, make_plan
from controller.trees import roots_above
from endpoints.collectives.registry import collective
from endpoints.core.blocks import BlockLayout
from endpoints.core.communicator import Communicator
from endpoints.core.fast_path import Sender
from endpoints.nic.stripes import stripes
from endpoints.wire.codec import Codec
from endpoints.wire.templates import build_templates
from experiments.communicators import communicator, group_names
from experiments.movement.link_theory import LinkTheory
from experiments.sim.network import Clock, LinkModel, Network
from topo.fabric import Fabric
from topo.registry import parse_topology

TEMPLATES = build_templates()
MTU = 256
BLOCK = 211 * MTU + 16
"""Chunks that neither workers nor trees divide."""
MOST = 1.05
"""Of the most loaded core to the least."""


def balanced_trees(workers: int, roots: int) -> int:
    """The fewest with which each worker has as many as the others, and each root is that of as many."""
    return lcm(workers, roots)


def send_all(network: Network, fabric: Fabric, comm: Communicator, block_bytes: int) -> None:
    """What a worker of each rank multicasts of its stripe."""
    layout = BlockLayout(comm.size, block_bytes, comm.mtu)
    for rank, host in enumerate(fabric.host):
        data = np.zeros(block_bytes, np.uint8)
        sender = Sender(layout=layout, block=rank, data=data, trees=len(comm.groups), prefix=1 << 24, batch=64)
        codec = Codec(comm, rank, TEMPLATES)
        sender.begin(0, 0)
        while not sender.finished:
            for burst in sender.due(0):
                for frame in codec.encode(burst):
                    network.send(host, 0, bytes(frame))


def by_core(fabric: Fabric, link_bytes: dict[str, int]) -> dict[str, int]:
    """Bytes on the ports of each core, both ways."""
    cores = {switch.name: 0 for switch in fabric.switches if switch.role == "core"}
    for link, size in link_bytes.items():
        for end in link.split("->"):
            if end in cores:
                cores[end] += size
    return cores


def forwarded(workers: int, trees: int) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes by link as the switches' rules carry them, and as they should be."""
    fabric = parse_topology("fattree,k=4")
    groups = group_names(trees)
    plan = make_plan(Live(fabric), dict.fromkeys(groups, fabric.host), assign_slots(groups, {}))
    clock = Clock()
    network = Network(fabric, plan.rules, LinkModel(10**12), clock)
    comm = communicator(fabric, mtu=MTU, rate_bps=10**12, trees=trees)
    theory: Counter[str] = Counter()
    for worker, (start, stop) in enumerate(stripes(BLOCK, MTU, workers)):
        share = comm.share(worker, workers)
        send_all(network, fabric, share, stop - start)
        its = [plan.trees[group] for group in groups[worker::workers]]
        loads = LinkTheory(fabric, its, list(fabric.host), MTU).loads(collective("mcast_allgather"), stop - start)
        theory.update({link: load.bytes for link, load in loads.items()})
    while clock.step():
        pass
    return dict(network.link_bytes), dict(theory)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_cores_share_what_the_workers_of_all_nics_send(workers: int) -> None:
    fabric = parse_topology("fattree,k=4")
    trees = balanced_trees(workers, len(roots_above(Live(fabric), list(fabric.host))))
    found, expected = forwarded(workers, trees)
    assert found == expected
    cores = by_core(fabric, found)
    assert len(cores) == 4
    assert max(cores.values()) <= MOST * min(cores.values())


def test_a_tree_less_and_the_cores_do_not_share() -> None:
    fabric = parse_topology("fattree,k=4")
    cores = by_core(fabric, forwarded(2, 3)[0])
    assert max(cores.values()) > MOST * min(cores.values())


@pytest.mark.parametrize(
    ("workers", "roots", "trees"), [(1, 4, 4), (2, 4, 4), (4, 4, 4), (3, 4, 12), (4, 1, 4), (7, 9, 63)]
)
def test_every_worker_has_as_many_trees_and_every_root_as_many(workers: int, roots: int, trees: int) -> None:
    assert balanced_trees(workers, roots) == trees
    share = [Counter(tree % roots for tree in range(worker, trees, workers)).total() for worker in range(workers)]
    assert len(set(share)) == 1
    assert len(set(Counter(tree % roots for tree in range(trees)).values())) == 1
