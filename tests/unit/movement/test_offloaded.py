"""NICs move the bytes that hosts would, over the trees of their workers."""

from __future__ import annotations

import pytest

from controller.live import Live
from controller.trees import Tree, plan_tree
from endpoints.collectives.registry import collective, collectives
from endpoints.core.config import ProtocolConfig
from endpoints.nic import budget
from experiments.communicators import communicator
from experiments.movement.link_theory import LinkTheory, Load
from experiments.movement.offloaded import OffloadedTheory
from topo.registry import parse_topology

FABRIC = parse_topology("leafspine,leaves=2,spines=2,hosts=3")
HOSTS = [host.name for host in FABRIC.hosts]
CONFIG = ProtocolConfig()
MTU = 1024
ROOM = budget.Nic(budget.MEMORY)
MULTICAST = ("mcast_allgather", "mcast_broadcast")


def trees(count: int) -> list[Tree]:
    tree = plan_tree(Live(FABRIC), HOSTS)
    assert tree is not None
    return [tree] * count


def offloaded(algorithm: str, size: int, workers: int, nic: budget.Nic = ROOM) -> dict[str, Load]:
    comm = communicator(FABRIC, mtu=MTU, rate_bps=50_000_000, trees=workers)
    return OffloadedTheory(FABRIC, trees(workers), comm, CONFIG, workers, nic).loads(collective(algorithm), size)


def by_hosts(algorithm: str, size: int) -> dict[str, Load]:
    return LinkTheory(FABRIC, trees(1), HOSTS, MTU, CONFIG).loads(collective(algorithm), size)


@pytest.mark.parametrize("size", [0, 1, 5 * MTU + 12, 40 * MTU])
@pytest.mark.parametrize("algorithm", collectives())
def test_one_worker_with_room_moves_what_a_host_moves(algorithm: str, size: int) -> None:
    assert offloaded(algorithm, size, 1) == by_hosts(algorithm, size)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("algorithm", MULTICAST)
def test_workers_cut_at_chunks_so_multicast_moves_the_same(algorithm: str, workers: int) -> None:
    assert offloaded(algorithm, 41 * MTU + 5, workers) == by_hosts(algorithm, 41 * MTU + 5)


@pytest.mark.parametrize("algorithm", MULTICAST)
def test_rounds_move_the_same(algorithm: str) -> None:
    little = budget.Nic(450_000, staging=128)
    size = 3000 * MTU
    fits = budget.plan(budget.Collective(6, collective(algorithm).roots(6), size, MTU), little)
    assert (fits.rounds > 1) == (algorithm == "mcast_allgather")
    assert offloaded(algorithm, size, 1, little) == by_hosts(algorithm, size)


def test_a_write_has_bytes_of_one_block_alone_where_blocks_lie_apart() -> None:
    size = 6 * MTU
    one, two = by_hosts("recursive_doubling_allgather", size), offloaded("recursive_doubling_allgather", size, 2)
    assert {link: load.packets for link, load in one.items()} == {link: load.packets for link, load in two.items()}
    assert sum(load.bytes for load in two.values()) > sum(load.bytes for load in one.values())
