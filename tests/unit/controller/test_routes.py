from __future__ import annotations

import itertools
import random
from collections import Counter

import networkx as nx
import pytest

from controller.live import End, Live, link_ends, switch_ends
from controller.routes import Routes, route, unicast_routes
from topo.fabric import Fabric, FabricError
from topo.registry import parse_topology


def path(fabric: Fabric, routes: Routes, source: str, destination: str) -> list[str]:
    """The switches on the way; fails the test on a loop or a dead end."""
    ip = fabric.host[destination].ip
    node = fabric.edge_of[source]
    passed: list[str] = []
    while node != destination:
        assert node not in passed, f"{source} to {destination} loops at {node}: {passed}"
        passed.append(node)
        node = fabric.ports[node][routes[node][ip]]
    return passed


def test_every_pair_is_routed_up_and_then_down(fabric: Fabric) -> None:
    routes = unicast_routes(Live(fabric))
    for source in fabric.host:
        for destination in fabric.host:
            if source != destination:
                tiers = [fabric.switch[name].tier for name in path(fabric, routes, source, destination)]
                top = tiers.index(max(tiers))
                assert tiers == [*range(top), *range(top, -1, -1)]


def test_paths_are_the_shortest_there_are(fabric: Fabric) -> None:
    routes = unicast_routes(Live(fabric))
    hosts = list(fabric.host)
    for source in hosts[:3]:
        lengths = nx.single_source_shortest_path_length(fabric.graph, source)
        for destination in hosts:
            if source != destination:
                assert len(path(fabric, routes, source, destination)) == lengths[destination] - 1


@pytest.mark.parametrize("k", [4, 6, 8])
def test_a_shift_permutation_puts_one_flow_on_each_link(k: int) -> None:
    """What D-mod-k is for: every rank sends to the rank s further, and no link carries two of these flows."""
    fabric = parse_topology(f"fattree,k={k}")
    routes = unicast_routes(Live(fabric))
    names = [host.name for host in fabric.hosts]
    for shift in range(1, len(names)):
        load: Counter[tuple[str, str]] = Counter()
        for rank, source in enumerate(names):
            destination = names[(rank + shift) % len(names)]
            nodes = [source, *path(fabric, routes, source, destination), destination]
            load.update(itertools.pairwise(nodes))
        assert max(load.values()) == 1, f"shift {shift}: {load.most_common(2)}"


def test_uplinks_carry_equal_shares_of_the_destinations(fabric: Fabric) -> None:
    live = Live(fabric)
    routes = unicast_routes(live)
    hosts_per_edge = len(fabric.hosts) // sum(switch.tier == 0 for switch in fabric.switches)
    for switch in fabric.switches:
        uplinks = live.uplinks[switch.name]
        if uplinks and switch.tier == 0:
            shares = Counter(port for port in routes[switch.name].values() if port in uplinks)
            spread = max(shares[port] for port in uplinks) - min(shares[port] for port in uplinks)
            assert spread <= (0 if hosts_per_edge % len(uplinks) == 0 else 2), (switch.name, shares)


def test_a_dead_link_is_avoided_and_what_did_not_use_it_stays(k4: Fabric) -> None:
    before = unicast_routes(Live(k4))
    after = unicast_routes(Live(k4, link_ends(k4, "a00", "c0")))
    assert k4.port_to["a00"]["c0"] not in after["a00"].values()
    used = [ip for ip, port in before["a00"].items() if port == k4.port_to["a00"]["c0"]]
    assert used, "the dead link carried something"
    moved = {ip for ip, port in after["a00"].items() if port != before["a00"][ip]}
    assert moved == set(used)
    for source in k4.host:
        for destination in k4.host:
            if source != destination:
                passed = path(k4, after, source, destination)
                assert not {("a00", "c0"), ("c0", "a00")} & set(itertools.pairwise(passed))


def test_a_dead_aggregation_switch_leaves_every_pair_connected(k4: Fabric) -> None:
    routes = unicast_routes(Live(k4, switch_ends(k4, "a00")))
    for source in k4.host:
        for destination in k4.host:
            if source != destination:
                assert "a00" not in path(k4, routes, source, destination)


def test_a_way_that_no_up_down_path_has_is_found(k4: Fabric) -> None:
    """e00 keeps a00 and e01 keeps a01: they meet only by going down in another pod."""
    down = link_ends(k4, "e00", "a01") | link_ends(k4, "e01", "a00")
    passed = path(k4, unicast_routes(Live(k4, down)), "h1", "h3")
    tiers = [k4.switch[name].tier for name in passed]
    assert tiers == [0, 1, 2, 1, 0, 1, 2, 1, 0]


def test_hosts_that_are_cut_off_are_in_no_table(k4: Fabric) -> None:
    routes = unicast_routes(Live(k4, switch_ends(k4, "e00") | link_ends(k4, "h16", "e31")))
    for switch, table in routes.items():
        assert not {k4.host[h].ip for h in ("h1", "h2", "h16")} & table.keys(), switch


@pytest.mark.parametrize("seed", range(40))
def test_random_failures_never_loop_and_route_whoever_is_connected(seed: int) -> None:
    rng = random.Random(seed)
    fabric = parse_topology(rng.choice(["fattree,k=4", "leafspine", "leafspine,leaves=5,spines=3,hosts=7"]))
    dead = rng.sample(fabric.links, rng.randrange(1, len(fabric.links) // 2))
    down: frozenset[End] = frozenset((link.b, link.b_port) for link in dead)
    routes = unicast_routes(Live(fabric, down))
    graph = fabric.graph.copy()
    graph.remove_edges_from((link.a, link.b) for link in dead)
    for source in fabric.host:
        reachable = nx.node_connected_component(graph, source)
        for destination in fabric.host:
            connected = destination in reachable and source != destination
            if connected:
                nodes = [source, *path(fabric, routes, source, destination), destination]
                assert all(graph.has_edge(*hop) for hop in itertools.pairwise(nodes))
            elif source != destination and len(reachable) > 1:
                assert fabric.host[destination].ip not in routes[fabric.edge_of[source]]


def test_the_same_fabric_always_gives_the_same_routes(fabric: Fabric) -> None:
    again = Fabric.from_json(fabric.to_json())
    assert unicast_routes(Live(fabric)) == unicast_routes(Live(again))


def test_a_route_names_its_links_in_order(k4: Fabric) -> None:
    routes = unicast_routes(Live(k4))
    assert route(k4, routes, "h1", "h2") == (("h1", "e00"), ("e00", "h2"))
    across = route(k4, routes, "h1", "h16")
    assert [tier for tier, _ in across] == ["h1", "e00", across[2][0], across[3][0], across[4][0], "e31"]
    assert all(one[1] == next_one[0] for one, next_one in itertools.pairwise(across))


def test_where_no_route_is_the_walk_says_so() -> None:
    fabric = parse_topology("leafspine,leaves=2,spines=1,hosts=1")
    routes = unicast_routes(Live(fabric, link_ends(fabric, "l0", "s0")))
    with pytest.raises(FabricError, match="l0 has no route from h1 to h2"):
        route(fabric, routes, "h1", "h2")
