"""Traffic between two readings, and every disagreement of those who count named by link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.movement.port_traffic import Moved, Reading, moved
from topo.counters import Counters
from topo.fabric import Fabric, interface
from topo.registry import parse_topology

FABRIC = parse_topology("single,hosts=2")
SENT = Counters(tx_packets=3, tx_bytes=3000, rx_packets=2, rx_bytes=2000)
"""What h1 counts."""
MIRRORED = Counters(rx_packets=3, rx_bytes=3000, tx_packets=2, tx_bytes=2000)
"""What the switch counts at its port to h1."""


def reading(kernel: dict[str, Counters], openflow: dict[tuple[str, int], Counters], *, quiet: bool = True) -> Reading:
    """Of all ports, those that are not named at zero."""
    names = [interface(node, port) for node, port, _ in FABRIC.directed_links]
    ports = [(node, port) for node, port, _ in FABRIC.directed_links if node in FABRIC.switch]
    return Reading(dict.fromkeys(names, Counters()) | kernel, dict.fromkeys(ports, Counters()) | openflow, quiet=quiet)


def of_first_host(host: Counters = SENT, port: Counters = MIRRORED, openflow: Counters = MIRRORED) -> Moved:
    after = reading({"h1-eth0": host, "s1-eth1": port}, {("s1", 1): openflow})
    return moved(FABRIC, reading({}, {}), after)


def test_bytes_and_packets_of_each_direction_are_those_that_its_sender_sent() -> None:
    found = of_first_host()
    assert found.link_bytes == {"h1->s1": 3000, "s1->h1": 2000, "h2->s1": 0, "s1->h2": 0}
    assert found.link_packets == {"h1->s1": 3, "s1->h1": 2, "h2->s1": 0, "s1->h2": 0}
    assert found.mismatches == []


def test_what_was_counted_before_does_not_matter() -> None:
    before = reading({"h1-eth0": SENT, "s1-eth1": MIRRORED}, {("s1", 1): MIRRORED})
    assert moved(FABRIC, before, before) == moved(FABRIC, reading({}, {}), reading({}, {}))


def test_a_frame_that_did_not_arrive_is_a_mismatch_of_its_link_alone() -> None:
    lost = replace(MIRRORED, rx_packets=2, rx_bytes=2000)
    found = of_first_host(port=lost, openflow=lost)
    assert [(m.link, m.quantity) for m in found.mismatches] == [("h1->s1", "bytes"), ("h1->s1", "packets")]
    assert found.mismatches[1].counted == {"kernel tx h1": 3, "kernel rx s1": 2, "openflow rx s1": 2}
    assert found.mismatches[1].quiet


def test_openflow_that_counts_otherwise_than_the_kernel_is_a_mismatch() -> None:
    found = of_first_host(openflow=replace(MIRRORED, tx_bytes=2004))
    [mismatch] = found.mismatches
    assert (mismatch.link, mismatch.quantity) == ("s1->h1", "bytes")
    assert mismatch.counted == {"kernel tx s1": 2000, "openflow tx s1": 2004, "kernel rx h1": 2000}


@pytest.mark.parametrize("quiet", [(True, False), (False, True)])
def test_a_reading_while_frames_moved_is_told(quiet: tuple[bool, bool]) -> None:
    before = reading({}, {}, quiet=quiet[0])
    found = moved(FABRIC, before, reading({"h1-eth0": SENT}, {}, quiet=quiet[1]))
    assert found.mismatches
    assert not any(mismatch.quiet for mismatch in found.mismatches)


def test_a_switch_that_did_not_answer_is_told_and_the_kernel_counts_on() -> None:
    silent = replace(reading({"h1-eth0": SENT, "s1-eth1": MIRRORED}, {}), openflow={})
    found = moved(FABRIC, reading({}, {}), silent)
    assert found.link_bytes["h1->s1"] == 3000
    assert {mismatch.link for mismatch in found.mismatches} == set(found.link_bytes)
    assert all(None in mismatch.counted.values() for mismatch in found.mismatches)


@pytest.mark.parametrize("topology", ["fattree,k=4", "leafspine"])
def test_a_port_is_compared_with_the_port_behind_its_own_cable(topology: str) -> None:
    """Every direction of every link carries another number; all agree only if ends are paired rightly."""
    fabric: Fabric = parse_topology(topology)
    carried = {(node, peer): index + 1 for index, (node, _, peer) in enumerate(fabric.directed_links)}
    ports = {
        (node, port): Counters(tx_packets=carried[node, peer], rx_packets=carried[peer, node])
        for node, port, peer in fabric.directed_links
    }
    kernel = {interface(*end): counters for end, counters in ports.items()}
    openflow = {end: counters for end, counters in ports.items() if end[0] in fabric.switch}
    zero = Reading(dict.fromkeys(kernel, Counters()), dict.fromkeys(openflow, Counters()), quiet=True)
    found = moved(fabric, zero, Reading(kernel, openflow, quiet=True))
    assert found.mismatches == []
    assert found.link_packets == {f"{node}->{peer}": number for (node, peer), number in carried.items()}
