"""Lower bounds of what external programs move: by hand, against brute force, and below what any schedule moves."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from controller.live import Live
from controller.trees import plan_tree
from endpoints.collectives.registry import collectives
from experiments.external.registry import externals
from experiments.movement.bounds import ON_A_TREE, UNICAST, spanning_hops
from experiments.movement.link_theory import LinkTheory, Paths, block_crossings
from experiments.placement import Placement, hosts_by_rank
from topo.registry import parse_topology

FAT_TREE, LEAF_SPINE, ONE_SWITCH = "fattree,k=4", "leafspine,leaves=2,spines=2,hosts=4", "single,hosts=5"
N = 1000


def links(topology: str, placement: Placement = "contiguous") -> LinkTheory:
    fabric = parse_topology(topology)
    hosts = [host.name for host in hosts_by_rank(fabric, placement, seed=3)]
    tree = plan_tree(Live(fabric), hosts)
    assert tree is not None
    return LinkTheory(fabric, [tree], hosts, 4096)


@pytest.mark.parametrize(
    ("topology", "hops", "edges"),
    [
        (FAT_TREE, 8 * 2 + 4 * 4 + 3 * 6, 28),  # pairs below an edge switch, edges of a pod, pods
        (LEAF_SPINE, 6 * 2 + 1 * 4, 10),
        (ONE_SWITCH, 4 * 2, 5),
    ],
)
def test_blocks_cross_as_many_links_as_counted_by_hand(topology: str, hops: int, edges: int) -> None:
    theory = links(topology)
    ranks = len(theory.hosts)
    assert UNICAST.payload(theory, "allgather", N) == ranks * hops * N
    assert UNICAST.payload(theory, "broadcast", N) == hops * N
    assert ON_A_TREE.payload(theory, "broadcast", N) == edges * N
    assert ON_A_TREE.payload(theory, "allgather", N) == ranks * edges * N


def least_by_trying(paths: Paths, ranks: int) -> int:
    """Every host but the first is sent the block by some other: the cheapest choice without a circle."""

    def connected(senders: tuple[int, ...]) -> bool:
        reached = {0}
        for _ in range(ranks):
            reached |= {rank for rank, sender in enumerate(senders, 1) if sender in reached}
        return len(reached) == ranks

    choices = product(range(ranks), repeat=ranks - 1)
    return min(
        sum(len(paths(sender, rank)) for rank, sender in enumerate(senders, 1))
        for senders in choices
        if all(sender != rank for rank, sender in enumerate(senders, 1)) and connected(senders)
    )


@pytest.mark.parametrize("hosts", [["h1", "h2", "h3", "h5", "h16"], ["h1", "h4", "h8", "h12", "h7"], ["h9"]])
def test_no_choice_of_senders_takes_fewer_links(hosts: list[str]) -> None:
    theory = LinkTheory(parse_topology(FAT_TREE), (), hosts, 4096)
    assert spanning_hops(theory.paths, len(hosts)) == least_by_trying(theory.paths, len(hosts))


@pytest.mark.parametrize("topology", [FAT_TREE, LEAF_SPINE, ONE_SWITCH])
@pytest.mark.parametrize("placement", ["contiguous", "random"])
def test_no_point_to_point_algorithm_of_ours_moves_less_than_unicast_must(topology: str, placement: Placement) -> None:
    theory = links(topology, placement)
    ranks = len(theory.hosts)
    tried = 0
    for entry in collectives().values():
        if entry.transfers is not None:
            moved = block_crossings(entry.transfers(ranks, N), theory.paths)
            assert moved >= UNICAST.payload(theory, entry.kind, N), entry.name
            tried += 1
    assert tried >= 6


def test_a_ring_in_random_order_has_another_bound() -> None:
    bound = externals()["openmpi_ring_allgather"].bound
    assert bound is not None
    assert bound.payload(links(FAT_TREE), "allgather", N) == 2 * 28 * 15 * N
    assert bound.payload(links(FAT_TREE, "random"), "allgather", N) > 2 * 28 * 15 * N


@pytest.mark.parametrize("entry", externals().values(), ids=lambda entry: entry.name)
def test_every_external_program_has_a_bound_that_says_what_it_counts(entry: Any) -> None:
    theory = links(LEAF_SPINE)
    assert entry.bound.payload(theory, entry.kind, N) >= (len(theory.hosts) - 1) * N
    assert entry.bound.words
