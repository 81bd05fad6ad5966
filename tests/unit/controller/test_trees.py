from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.live import Live, link_ends, switch_ends
from controller.trees import Tree, plan_tree, plan_trees
from topo.fabric import Fabric, FabricError
from topo.registry import parse_topology


def planned(live: Live, members: list[str], slot: int = 0) -> Tree:
    tree = plan_tree(live, members, slot)
    assert tree is not None
    return tree


def check_tree(fabric: Fabric, tree: Tree, members: set[str]) -> None:
    """It is a tree of links of the fabric, its leaves are the members, and ports and edges say the same."""
    graph = nx.Graph(tree.edges)
    assert nx.is_tree(graph)
    assert len(graph.edges) == len(tree.edges)
    assert {node for node in graph if graph.degree[node] == 1 and node in fabric.host} == members
    if len(members) > 1:
        assert all(graph.degree[node] > 1 for node in graph if node in fabric.switch)
    assert tree.root in graph
    for switch, ports in tree.ports.items():
        assert list(ports) == sorted(set(ports))
        assert {fabric.ports[switch][port] for port in ports} == set(graph[switch])
    assert {node for node in graph if node in fabric.switch} == tree.ports.keys()


def test_all_hosts_of_the_k4_fat_tree_need_28_edges(k4: Fabric) -> None:
    """PLATFORM: each sender's byte crosses 1 host uplink and 27 switch egress links."""
    tree = planned(Live(k4), list(k4.host))
    assert len(tree.edges) == 28
    egress = sum(len(ports) for ports in tree.ports.values())
    # Each switch of the tree repeats a frame to all its ports but the one it came by; the sender's own uplink is extra.
    assert egress - len(tree.ports) == 27
    assert tree.feeders == {}
    assert tree.unreached == ()


def test_all_hosts_span_a_minimal_tree(fabric: Fabric) -> None:
    tree = planned(Live(fabric), list(fabric.host))
    check_tree(fabric, tree, set(fabric.host))
    edges = [switch for switch in fabric.switches if switch.tier == 0]
    pods = {switch.pod for switch in edges}
    tiers = max(switch.tier for switch in fabric.switches)
    # k=2: one edge switch, one aggregation switch a pod.
    expected = len(fabric.hosts) + (len(edges) if len(edges) > 1 else 0) + (len(pods) if tiers == 2 else 0)
    assert len(tree.edges) == expected


def test_members_under_one_edge_switch_stay_below_it(k4: Fabric) -> None:
    tree = planned(Live(k4), ["h3", "h4"])
    assert tree.ports == {"e01": (1, 2)}
    assert tree.root == "e01"
    assert tree.edges == (("e01", "h3"), ("e01", "h4"))


def test_members_of_one_pod_stay_in_it(k4: Fabric) -> None:
    tree = planned(Live(k4), ["h5", "h8"], slot=1)
    assert tree.ports.keys() == {"e10", "e11", "a11"}
    assert tree.root == "a11"


def test_a_single_member_is_a_tree_of_its_edge_switch(k4: Fabric) -> None:
    assert planned(Live(k4), ["h16"]).ports == {"e31": (2,)}


@pytest.mark.parametrize(("k", "cores"), [(4, 4), (6, 9), (8, 16)])
def test_consecutive_groups_take_different_cores(k: int, cores: int) -> None:
    fabric = parse_topology(f"fattree,k={k}")
    live = Live(fabric)
    roots = [planned(live, list(fabric.host), slot).root for slot in range(2 * cores)]
    assert len(set(roots[:cores])) == cores
    assert roots[:cores] == roots[cores:]


@pytest.mark.parametrize("k", [4, 6, 8])
def test_as_many_groups_as_aggregation_switches_share_no_trunk(k: int) -> None:
    fabric = parse_topology(f"fattree,k={k}")
    live = Live(fabric)
    load: Counter[tuple[str, str]] = Counter()
    for slot in range(k // 2):
        load.update(edge for edge in planned(live, list(fabric.host), slot).edges if edge[1] in fabric.switch)
    assert set(load.values()) == {1}


def test_consecutive_groups_take_different_spines() -> None:
    fabric = parse_topology("leafspine,leaves=3,spines=5,hosts=2")
    roots = [planned(Live(fabric), list(fabric.host), slot).root for slot in range(5)]
    assert sorted(roots) == ["s0", "s1", "s2", "s3", "s4"]


def test_every_host_outside_has_a_way_into_the_tree(fabric: Fabric) -> None:
    live = Live(fabric)
    rng = random.Random(7)
    for slot in range(6):
        members = rng.sample(list(fabric.host), rng.randint(1, len(fabric.hosts)))
        tree = planned(live, members, slot)
        assert not tree.feeders.keys() & tree.ports.keys()
        for edge in set(fabric.edge_of.values()):
            switch, hops = edge, 0
            while switch not in tree.ports:
                switch = fabric.ports[switch][tree.feeders[switch]]
                hops += 1
            assert hops <= 4


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_members_make_a_tree_with_only_the_branches_they_need(data: st.DataObject) -> None:
    fabric = parse_topology(data.draw(st.sampled_from(["fattree,k=4", "fattree,k=6", "leafspine", "single"])))
    members = data.draw(st.sets(st.sampled_from(list(fabric.host)), min_size=1))
    slot = data.draw(st.integers(0, 40))
    tree = planned(Live(fabric), sorted(members), slot)
    check_tree(fabric, tree, members)
    trunks = [edge for edge in tree.edges if edge[1] in fabric.switch]
    edges = {fabric.edge_of[m] for m in members}
    pods = {fabric.switch[name].pod for name in edges}
    # On a fat tree no tree is smaller: every edge switch with members hangs on something, every pod on a core.
    cores_needed = fabric.topology == "fattree" and len(pods) > 1
    assert len(trunks) == (len(edges) if len(edges) > 1 else 0) + (len(pods) if cores_needed else 0)


def test_the_order_in_which_members_are_named_does_not_matter(k4: Fabric) -> None:
    live = Live(k4)
    for slot in range(4):
        assert plan_tree(live, ["h1", "h9", "h16"], slot) == plan_tree(live, ["h16", "h1", "h9"], slot)


def test_a_dead_core_moves_only_the_trees_that_used_it(k4: Fabric) -> None:
    everyone = list(k4.host)
    live = Live(k4, switch_ends(k4, "c0"))
    roots = [planned(Live(k4), everyone, slot).root for slot in range(4)]
    moved = [planned(live, everyone, slot).root for slot in range(4)]
    assert "c0" in roots
    assert "c0" not in moved
    assert [old == new for old, new in zip(roots, moved, strict=True)] == [root != "c0" for root in roots]


def test_a_dead_trunk_is_avoided_at_no_cost(k4: Fabric) -> None:
    tree = planned(Live(k4, link_ends(k4, "a00", "c0")), list(k4.host))
    check_tree(k4, tree, set(k4.host))
    assert ("c0", "a00") not in tree.edges
    assert len(tree.edges) == 28


def test_members_without_a_common_switch_above_are_still_joined(k4: Fabric) -> None:
    """Every core has lost one pod, so no core has everybody below it."""
    down = frozenset[tuple[str, int]]()
    for core, aggregation in (("c0", "a00"), ("c1", "a00"), ("c2", "a11"), ("c3", "a11")):
        down |= link_ends(k4, core, aggregation)
    tree = planned(Live(k4, down), list(k4.host))
    check_tree(k4, tree, set(k4.host))
    dead = {frozenset({"c0", "a00"}), frozenset({"c1", "a00"}), frozenset({"c2", "a11"}), frozenset({"c3", "a11"})}
    assert not dead & {frozenset(edge) for edge in tree.edges}
    assert tree.unreached == ()


def test_members_that_are_cut_off_are_named(k4: Fabric) -> None:
    live = Live(k4, switch_ends(k4, "e00") | link_ends(k4, "h16", "e31"))
    tree = planned(live, ["h1", "h2", "h5", "h15", "h16"])
    assert tree.unreached == ("h1", "h2", "h16")
    check_tree(k4, tree, {"h5", "h15"})
    assert plan_tree(live, ["h1", "h16"]) is None


def test_in_a_split_fabric_each_part_has_a_tree_and_the_root_is_where_most_members_are() -> None:
    fabric = parse_topology("leafspine,leaves=3,spines=1,hosts=2")
    live = Live(fabric, link_ends(fabric, "l0", "s0"))
    tree = planned(live, ["h1", "h2", "h3", "h4", "h5"])
    assert tree.unreached == ("h1", "h2")
    assert tree.ports.pop("l0") == (1, 2)
    rest = tuple(edge for edge in tree.edges if edge[0] != "l0")
    assert len(rest) == len(tree.edges) - 2
    check_tree(fabric, replace(tree, edges=rest), {"h3", "h4", "h5"})


def test_trees_without_a_root_of_their_own_go_where_fewest_are(k4: Fabric) -> None:
    groups = {f"239.192.0.{number + 1}": list(k4.host) for number in range(6)}
    slots = {group: number for number, group in enumerate(groups)}
    whole = plan_trees(Live(k4), groups, slots)
    for core in ("c0", "c1", "c2", "c3"):
        trees = plan_trees(Live(k4, switch_ends(k4, core)), groups, slots)
        assert sorted(Counter(tree.root for tree in trees.values()).values()) == [2, 2, 2]
        assert all(trees[group] == tree for group, tree in whole.items() if tree.root != core)


def test_misuse_is_refused(k4: Fabric) -> None:
    with pytest.raises(FabricError, match="e00 is no host"):
        plan_tree(Live(k4), ["h1", "e00"])
    with pytest.raises(ValueError, match="slot -1"):
        plan_tree(Live(k4), ["h1"], -1)
