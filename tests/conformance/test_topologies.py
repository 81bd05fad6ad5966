"""What every topology must be, whoever wrote it: this walks the registry."""

from __future__ import annotations

import itertools
import re

import networkx as nx
import pytest

from topo.fabric import Fabric, interface
from topo.registry import parse_topology, topologies

IFNAMSIZ = 15
"""Longest name that Linux gives an interface (include/uapi/linux/if.h, less the final zero)."""

LARGE = ("fattree,k=6", "fattree,k=12", "leafspine,leaves=5,spines=3,hosts=7", "single,hosts=253")
LARGEST = ("fattree,k=48", "leafspine,leaves=256,spines=256,hosts=253")

any_fabric = pytest.mark.parametrize(
    "fabric", [parse_topology(t) for t in (*topologies(), *LARGE)], ids=lambda f: f"{f.topology}{f.params}"
)


@any_fabric
def test_it_is_connected(fabric: Fabric) -> None:
    assert nx.is_connected(fabric.graph)
    assert fabric.graph.number_of_edges() == len(fabric.links), "parallel links"


@any_fabric
def test_hosts_are_numbered_in_depth_first_order(fabric: Fabric) -> None:
    assert [h.index for h in fabric.hosts] == list(range(len(fabric.hosts)))
    assert [h.name for h in fabric.hosts] == [f"h{i + 1}" for i in range(len(fabric.hosts))]
    edges = [fabric.edge_of[h.name] for h in fabric.hosts]
    changes = sum(a != b for a, b in itertools.pairwise(edges))
    assert changes == len(set(edges)) - 1, "the hosts of an edge switch do not follow each other"


@any_fabric
def test_ports_are_consistent(fabric: Fabric) -> None:
    for host in fabric.hosts:
        assert list(fabric.ports[host.name]) == [0]
    for switch in fabric.switches:
        ports = fabric.ports[switch.name]
        assert sorted(ports) == list(range(1, len(ports) + 1))
        for port, peer in ports.items():
            assert fabric.ports[peer][fabric.port_to[peer][switch.name]] == switch.name
            assert fabric.port_to[switch.name][peer] == port


@any_fabric
def test_tiers_are_levels(fabric: Fabric) -> None:
    """Links join neighbouring tiers, the lower node first; hosts attach to tier 0 and to nothing else."""
    tier = nx.get_node_attributes(fabric.graph, "tier")
    assert all(tier[link.b] - tier[link.a] == 1 for link in fabric.links)


@any_fabric
def test_lower_ports_lead_down(fabric: Fabric) -> None:
    tier = nx.get_node_attributes(fabric.graph, "tier")
    for switch in fabric.switches:
        tiers = [tier[peer] for _, peer in sorted(fabric.ports[switch.name].items())]
        assert tiers == sorted(tiers)


@any_fabric
def test_every_pair_has_an_up_down_route(fabric: Fabric) -> None:
    """From each host every other is reached by going up and then down, as loop-free routing in trees requires."""
    tier = nx.get_node_attributes(fabric.graph, "tier")
    layers = nx.DiGraph()
    for low, high in ((link.a, link.b) for link in fabric.links):
        layers.add_edge(("up", low), ("up", high))
        layers.add_edge(("down", high), ("down", low))
    layers.add_edges_from((("up", node), ("down", node)) for node, level in tier.items() if level >= 0)
    everybody = {h.name for h in fabric.hosts}
    for name in everybody if len(everybody) <= 64 else ["h1", f"h{len(everybody)}"]:
        reached = {node for way, node in nx.descendants(layers, ("up", name)) if way == "down"}
        assert everybody <= reached | {name}


@any_fabric
def test_json_round_trip(fabric: Fabric) -> None:
    text = fabric.to_json()
    assert "\n" not in text
    assert Fabric.from_json(text) == fabric


@any_fabric
def test_the_parameters_make_the_same_fabric_again(fabric: Fabric) -> None:
    text = ",".join([fabric.topology, *(f"{key}={value}" for key, value in fabric.params.items())])
    assert parse_topology(text) == fabric


@any_fabric
def test_addresses_are_well_formed(fabric: Fabric) -> None:
    for host in fabric.hosts:
        octets = [int(part) for part in host.ip.split(".")]
        assert octets[0] == 10
        assert all(0 <= octet <= 255 for octet in octets)
        assert 2 <= octets[3] <= 254
        assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", host.mac)
    assert all(0 < s.dpid < 1 << 48 for s in fabric.switches), "Mininet's user switch takes 12 hexadecimal digits"


@pytest.mark.parametrize("text", [*topologies(), *LARGE, *LARGEST])
def test_names_fit_the_kernel(text: str) -> None:
    fabric = parse_topology(text)
    nodes = {*fabric.host, *fabric.switch}
    interfaces = {interface(node, port) for node, port, _ in fabric.directed_links}
    assert len(interfaces) == 2 * len(fabric.links)
    assert all(len(name) <= IFNAMSIZ for name in nodes | interfaces)
    assert not nodes & interfaces


@pytest.mark.parametrize("name", topologies())
def test_its_help_is_one_line_that_names_the_parameters(name: str) -> None:
    entry = topologies()[name]
    assert 10 < len(entry.summary) <= 100
    assert all(parameter in entry.summary for parameter in entry.parameters)
