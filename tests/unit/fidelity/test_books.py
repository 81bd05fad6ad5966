"""Books that balance, and every way in which they may not."""

from __future__ import annotations

import pytest

from experiments.books import ends_of_dead_links, link_gaps, unexplained
from experiments.results import Packets
from topo.counters import Counters
from topo.fabric import Fabric, interface
from topo.registry import parse_topology


@pytest.fixture
def fabric() -> Fabric:
    return parse_topology("single,hosts=2")


def balanced(fabric: Fabric) -> dict[str, Counters]:
    """Seven frames over each directed link."""
    return {interface(node, port): Counters(rx_packets=7, tx_packets=7) for node, port, _ in fabric.directed_links}


def test_books_that_balance_say_nothing(fabric: Fabric) -> None:
    assert not list(link_gaps(fabric, balanced(fabric)))


def test_a_frame_that_vanished_is_told_with_its_link(fabric: Fabric) -> None:
    books = balanced(fabric)
    books["h1-eth0"] = Counters(rx_packets=7, tx_packets=8)
    [line] = link_gaps(fabric, books)
    assert line.startswith("1 frames vanished on link h1->")
    assert line.endswith("8 sent, 7 received")


def test_a_frame_that_nobody_sent_is_told(fabric: Fabric) -> None:
    books = balanced(fabric)
    books["h2-eth0"] = Counters(rx_packets=9, tx_packets=7)
    [line] = link_gaps(fabric, books)
    assert line.startswith("2 frames came from nowhere on link ")


def test_what_an_interface_dropped_has_a_cause(fabric: Fabric) -> None:
    books = balanced(fabric)
    books["h2-eth0"] = Counters(rx_packets=5, rx_dropped=2, tx_packets=7)
    assert not list(link_gaps(fabric, books))


def test_an_interface_that_was_not_read_is_not_judged(fabric: Fabric) -> None:
    books = balanced(fabric)
    del books["h1-eth0"]
    assert not list(link_gaps(fabric, books))


@pytest.mark.parametrize(
    ("lost", "drops", "lines"), [(0, {}, 0), (3, {}, 1), (3, {"e00-eth1": 0}, 1), (3, {"e00-eth1": 1}, 0)]
)
def test_missing_packets_need_a_drop_somewhere(lost: int, drops: dict[str, int], lines: int) -> None:
    found = list(unexplained(Packets(lost=lost), drops))
    assert len(found) == lines
    assert all(line.startswith("3 packets are missing") for line in found)


def test_a_link_that_was_down_is_a_cause_on_it_and_for_what_endpoints_miss_but_not_for_other_links(
    fabric: Fabric,
) -> None:
    books = balanced(fabric)
    for name in ("h1-eth0", "h2-eth0"):
        books[name] = Counters(rx_packets=7, tx_packets=8)
    dead = ends_of_dead_links(fabric, {"h1-eth0"})
    assert dead == {"h1-eth0", interface(fabric.edge_of["h1"], 1)}
    [line] = link_gaps(fabric, books, dead)
    assert "link h2->" in line
    assert not list(unexplained(Packets(lost=3), {}, dead))
    assert not list(unexplained(Packets(lost=3), {}, replaced=True))
    assert ends_of_dead_links(fabric, {"lo", "ovs-system"}) == frozenset()
