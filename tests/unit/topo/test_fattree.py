"""The fat tree against the formulas and the addressing of Al-Fares et al., section 3."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from topo.registry import parse_topology


@pytest.mark.parametrize("k", [2, 4, 6, 8, 12])
def test_sizes(k: int) -> None:
    fabric = parse_topology(f"fattree,k={k}")
    roles = Counter(s.role for s in fabric.switches)
    assert len(fabric.hosts) == k**3 // 4
    assert roles == {"edge": k * k // 2, "aggregation": k * k // 2, "core": k * k // 4}
    assert len(fabric.links) == 3 * k**3 // 4
    assert all(len(ports) == k for node, ports in fabric.ports.items() if node in fabric.switch)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_equal_cost_paths_between_pods_are_one_per_core(k: int) -> None:
    fabric = parse_topology(f"fattree,k={k}")
    paths = list(nx.all_shortest_paths(fabric.graph, "h1", f"h{len(fabric.hosts)}"))
    assert len(paths) == (k // 2) ** 2
    assert {len(path) for path in paths} == {7}
    assert {path[3] for path in paths} == {s.name for s in fabric.switches if s.role == "core"}


def test_names_and_addresses_tell_the_place() -> None:
    fabric = parse_topology("fattree,k=4")
    assert [h.name for h in fabric.hosts] == [f"h{r + 1}" for r in range(16)]
    assert fabric.edge_of["h1"] == "e00"
    assert fabric.edge_of["h16"] == "e31"
    assert (fabric.host["h1"].ip, fabric.host["h1"].mac) == ("10.0.0.2", "02:00:00:00:00:01")
    assert (fabric.host["h16"].ip, fabric.host["h16"].mac) == ("10.3.1.3", "02:00:00:00:00:10")
    assert fabric.switch["e00"].dpid == 0x0000_0001_0000_0000
    assert fabric.switch["a31"].dpid == 0x0000_0002_0003_0001
    assert fabric.switch["c2"].dpid == 0x0000_0003_0000_0002


def test_lower_ports_lead_down_and_higher_ports_up() -> None:
    fabric = parse_topology("fattree,k=4")
    assert fabric.ports["e21"] == {1: "h11", 2: "h12", 3: "a20", 4: "a21"}
    assert fabric.ports["a21"] == {1: "e20", 2: "e21", 3: "c2", 4: "c3"}
    assert fabric.ports["c3"] == {1: "a01", 2: "a11", 3: "a21", 4: "a31"}


def test_large_pods_have_unambiguous_names() -> None:
    names = {s.name for s in parse_topology("fattree,k=24").switches}
    assert {"e1_11", "e11_1", "a23_11", "c143"} <= names
