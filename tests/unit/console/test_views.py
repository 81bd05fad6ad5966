from __future__ import annotations

from controller.live import Live
from controller.plan import make_plan
from experiments.console import views
from topo.counters import Counters
from topo.fabric import interface
from topo.registry import parse_topology

FABRIC = parse_topology("single,hosts=3")
PLAN = make_plan(Live(FABRIC), {"239.192.0.1": ["h1", "h2", "h3"]}, {"239.192.0.1": 0})


def test_groups_and_trees_name_every_member() -> None:
    assert list(views.groups(PLAN, FABRIC)) == ["239.192.0.1: 3 hosts, root s1, 3 links: h1 h2 h3"]
    assert list(views.trees(PLAN)) == ["239.192.0.1", "  s1", "    h1", "    h2", "    h3"]


def test_every_port_has_a_line_with_its_counts() -> None:
    counted = {interface(node, port): Counters() for node, port, _ in FABRIC.directed_links}
    counted["h1-eth0"] = Counters(tx_packets=7, rx_packets=5, rx_dropped=2, tx_dropped=1)
    lines = list(views.ports(FABRIC, counted))
    assert len(lines) == 1 + len(counted)
    assert lines[1].split() == ["h1-eth0", "s1", "7", "5", "3"]
