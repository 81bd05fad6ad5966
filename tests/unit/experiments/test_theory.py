"""Theory: the closed forms of the paper and the walk over a tree say the same."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import theory
from topo.fabric import Fabric
from topo.registry import parse_topology

KIB = 1024


def a_tree(fabric: Fabric) -> list[tuple[str, str]]:
    """A shortest-path tree from the first of the topmost switches, cut back to what hosts need."""
    top = max(fabric.switches, key=lambda switch: switch.tier).name
    tree = nx.Graph(nx.bfs_tree(fabric.graph, top))
    while bare := [node for node, degree in tree.degree if degree < 2 and node not in fabric.host]:
        tree.remove_nodes_from(bare)
    return list(tree.edges)


def crossings_of(text: str) -> tuple[dict[str, int], int, int]:
    fabric = parse_topology(text)
    edges = a_tree(fabric)
    return theory.tree_crossings(edges, set(fabric.host), list(fabric.host)), len(edges), len(fabric.hosts)


@pytest.mark.parametrize(
    ("topology", "block_crossings"),
    [  # in blocks of N over one link each
        ("single,hosts=8", 64),
        ("leafspine,leaves=4,hosts=4", 320),
        ("fattree,k=4", 448),
        ("fattree,k=6", 4212),
        ("fattree,k=8", 21504),
    ],
)
def test_an_allgather_crosses_each_tree_edge_once_per_root(topology: str, block_crossings: int) -> None:
    crossings, edges, ranks = crossings_of(topology)
    assert sum(crossings.values()) == block_crossings == theory.tree_payload_bytes(edges, ranks, 1)


def test_own_uplink_is_crossed_once_and_own_downlink_by_all_others() -> None:
    crossings, _, ranks = crossings_of("fattree,k=4")
    assert crossings["h1->e00"] == 1
    assert crossings["e00->h1"] == ranks - 1


def test_a_broadcast_crosses_each_tree_edge_once_away_from_the_root() -> None:
    fabric = parse_topology("fattree,k=4")
    edges = a_tree(fabric)
    crossings = theory.tree_crossings(edges, set(fabric.host), ["h1"])
    assert set(crossings.values()) == {1}
    assert len(crossings) == len(edges)
    assert "h1->e00" in crossings
    assert "e00->h1" not in crossings


def test_a_branch_without_members_carries_nothing() -> None:
    edges = [("h1", "s"), ("h2", "s"), ("s", "t"), ("t", "h3")]
    assert theory.tree_crossings(edges, {"h1", "h2"}, ["h1"]) == {"h1->s": 1, "s->h2": 1}


@pytest.mark.parametrize(
    ("edges", "message"),
    [([("h1", "a"), ("a", "b"), ("b", "h1")], "reached twice"), ([("h1", "a"), ("b", "h2")], "does not reach h2")],
)
def test_what_is_no_tree_is_refused(edges: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        theory.tree_crossings(edges, {"h1", "h2"} & {node for edge in edges for node in edge}, ["h1"])


def test_headers_are_counted_for_every_frame_the_short_one_too() -> None:
    assert theory.Share.whole(4097, 4096).wire_bytes == 4097 + 2 * 70
    assert theory.Share.whole(0, 4096).wire_bytes == 0
    assert theory.multicast_link_bytes(
        [({"a->b": 2}, theory.Share.whole(4096, 4096)), ({"a->b": 1, "b->c": 1}, theory.Share(10, 1))]
    ) == {"a->b": 2 * 4166 + 80, "b->c": 80}


@given(st.integers(0, 10**6), st.sampled_from([256, 512, 1024, 2048, 4096]))
def test_link_bytes_sum_to_payload_and_headers(size: int, mtu: int) -> None:
    crossings, edges, ranks = crossings_of("leafspine,leaves=2,spines=1,hosts=2")
    total = sum(theory.multicast_link_bytes([(crossings, theory.Share.whole(size, mtu))]).values())
    chunks = -(-size // mtu)
    assert total == theory.tree_payload_bytes(edges, ranks, size) + edges * ranks * chunks * 70


@given(st.integers(0, 10**5), st.sampled_from([256, 4096]), st.integers(1, 5))
def test_trees_share_a_block_chunk_by_chunk(size: int, mtu: int, trees: int) -> None:
    shares = theory.Share.dealt(size, mtu, trees)
    lengths = [min(mtu, size - start) for start in range(0, size, mtu)]
    assert [share.payload for share in shares] == [sum(lengths[tree::trees]) for tree in range(trees)]
    assert [share.chunks for share in shares] == [len(lengths[tree::trees]) for tree in range(trees)]


def test_limits_are_the_receiving_links() -> None:
    assert theory.limit_seconds("allgather", 16, 1024 * KIB, 50_000_000) == pytest.approx(2.516582, rel=1e-6)
    assert theory.limit_seconds("broadcast", 16, 1024 * KIB, 50_000_000) == pytest.approx(0.167772, rel=1e-5)
    assert theory.limit_seconds("reduce_scatter", 16, 1024 * KIB, 50_000_000) == pytest.approx(2.516582, rel=1e-6)
    assert theory.limit_seconds("allgather", 1, 1024 * KIB, 50_000_000) == 0.0


def test_bandwidths_are_those_of_nccl_tests() -> None:
    assert theory.algbw("allgather", 16, 10**6, 2.0) == 8e6
    assert theory.busbw("allgather", 16, 10**6, 2.0) == 7.5e6
    assert theory.algbw("reduce_scatter", 16, 10**6, 2.0) == 8e6
    assert theory.busbw("reduce_scatter", 16, 10**6, 2.0) == 7.5e6
    assert theory.algbw("broadcast", 16, 10**6, 2.0) == theory.busbw("broadcast", 16, 10**6, 2.0) == 5e5
    assert theory.algbw("allgather", 16, 10**6, 0.0) == 0.0


def test_bus_bandwidth_at_the_limit_is_the_links_rate() -> None:
    seconds = theory.limit_seconds("allgather", 16, 10**6, 50_000_000)
    assert theory.busbw("allgather", 16, 10**6, seconds) * 8 == pytest.approx(50_000_000)


def test_headers_cap_what_can_be_reached() -> None:
    assert theory.header_cap(4096) == pytest.approx(0.98320, abs=1e-5)
