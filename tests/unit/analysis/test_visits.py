"""Packets followed from switch to switch, over captures of a run that never was: two leaves and two spines."""

from __future__ import annotations

from pathlib import Path

import pytest

from endpoints.core.packets import Opcode
from endpoints.io import pcapng
from experiments.analysis.trace import read_trace
from experiments.analysis.visits import Visits, visits
from tests.unit.analysis.run import SCENARIO, chunk, packet
from topo.fabric import FabricError

LINKS = ("h1-eth0", "h2-eth0", "h3-eth0", "h4-eth0", "l0-eth3", "l0-eth4", "l1-eth3", "l1-eth4")
"""Every link by its lower end; of a leaf, port 3 leads to s0 and port 4 to s1."""

Hop = tuple[str, bool]
"""A frame at an interface, and whether it goes out of it."""

TO_SPINE: list[Hop] = [("h1-eth0", True), ("l0-eth3", True)]
DOWN: list[Hop] = [("l1-eth3", False), ("h3-eth0", False)]
FRAME = chunk(0, 0)
REQUEST = packet(0, 2, Opcode.RC_SEND_ONLY, 5)


def followed(folder: Path, *ways: tuple[bytes, list[Hop]], captured: tuple[str, ...] = LINKS) -> Visits:
    """What is found where each frame took these hops."""
    files = []
    for name in captured:
        data = pcapng.section("test") + pcapng.interface(name, 9216)
        for frame, hops in ways:
            for at, out in hops:
                if at == name:
                    data += pcapng.packet(1, frame, len(frame), pcapng.OUTBOUND if out else pcapng.INBOUND)
        files.append(folder / f"{name}.pcapng")
        files[-1].write_bytes(data)
    return visits(read_trace(files), SCENARIO.fabric)


def told(found: Visits) -> set[tuple[str, int, int]]:
    return {(entry.switch, entry.came, entry.sent) for entry in found.returns}


def test_a_packet_that_is_copied_comes_to_each_switch_once(tmp_path: Path) -> None:
    found = followed(tmp_path, (FRAME, [*TO_SPINE, ("h2-eth0", False), *DOWN, ("h4-eth0", False)]))
    assert found == Visits(packets=1, arrivals=3, unknown=0, returns=())


def test_a_packet_that_comes_back_to_its_own_leaf_is_found(tmp_path: Path) -> None:
    found = followed(tmp_path, (FRAME, [*TO_SPINE, ("l0-eth3", False)]))
    assert told(found) == {("l0", 2, 1)}


def test_a_packet_that_goes_around_is_found_at_every_switch_that_it_comes_to_again(tmp_path: Path) -> None:
    around: list[Hop] = [("l1-eth3", False), ("l1-eth4", True), ("l0-eth4", False), ("l0-eth3", True)]
    found = followed(tmp_path, (FRAME, [*TO_SPINE, *around]))
    assert told(found) == {("l0", 2, 1), ("s0", 2, 1)}
    assert {entry.packet.opcode for entry in found.returns} == {Opcode.UD_SEND_ONLY_IMM}


def test_two_copies_that_meet_at_a_switch_are_found(tmp_path: Path) -> None:
    found = followed(tmp_path, (FRAME, [*TO_SPINE, ("l0-eth4", True), ("l1-eth3", False), ("l1-eth4", False)]))
    assert told(found) == {("l1", 2, 1)}


def test_a_packet_that_is_sent_again_may_come_again_and_no_more_often(tmp_path: Path) -> None:
    way = [*TO_SPINE, *DOWN]
    assert followed(tmp_path, (REQUEST, way), (REQUEST, way)).returns == ()
    assert told(followed(tmp_path, (REQUEST, way), (REQUEST, [*way, *DOWN]))) == {("l1", 3, 2)}


def test_packets_that_differ_in_a_number_are_different_ones(tmp_path: Path) -> None:
    way = [*TO_SPINE, *DOWN]
    other = packet(0, 2, Opcode.RC_SEND_ONLY, 6)
    assert followed(tmp_path, *((frame, way) for frame in (FRAME, chunk(0, 0, 2), chunk(0, 1), REQUEST, other))) == (
        Visits(packets=5, arrivals=15, unknown=0, returns=())
    )


def test_without_a_capture_of_its_host_a_packet_is_told_to_be_unknown(tmp_path: Path) -> None:
    found = followed(tmp_path, (REQUEST, [*TO_SPINE, *TO_SPINE, *DOWN]), captured=LINKS[1:])
    assert found == Visits(packets=0, arrivals=3, unknown=3, returns=())


def test_an_interface_of_no_such_fabric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match="leafspine has no interface l7-eth1"):
        followed(tmp_path, captured=("l7-eth1",))
