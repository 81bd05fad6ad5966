from __future__ import annotations

import pytest

from controller.live import Live, link_ends, switch_ends
from topo.fabric import Fabric, FabricError


def test_a_link_is_down_when_either_end_is(k4: Fabric) -> None:
    for end in link_ends(k4, "e00", "a00"):
        live = Live(k4, frozenset({end}))
        assert "a00" not in live.trunks["e00"].values()
        assert "e00" not in live.trunks["a00"].values()
        assert "a01" in live.trunks["e00"].values()


def test_a_dead_switch_reaches_nothing_and_nothing_reaches_it(k4: Fabric) -> None:
    live = Live(k4, switch_ends(k4, "e00"))
    assert live.distances(["e00"]) == {"e00": 0}
    assert live.host_ports["e00"] == {}
    assert "e00" not in live.distances(["c0"])


def test_distances_count_hops_to_the_nearest_target(k4: Fabric) -> None:
    distance = Live(k4).distances(["e00", "e30"])
    assert (distance["e00"], distance["a00"], distance["e01"], distance["c0"], distance["e10"]) == (0, 1, 2, 2, 4)
    assert distance["e31"] == 2


def test_below_a_core_is_everyone_and_below_an_aggregation_switch_its_pod(k4: Fabric) -> None:
    below = Live(k4).below
    assert below["c3"] == set(k4.host)
    assert below["a10"] == {"h5", "h6", "h7", "h8"}
    assert below["e31"] == {"h15", "h16"}


def test_unknown_ends_and_switches_are_refused(k4: Fabric) -> None:
    with pytest.raises(FabricError, match=r"\('e00', 99\)"):
        Live(k4, frozenset({("e00", 99)}))
    with pytest.raises(FabricError, match="no switch x1"):
        switch_ends(k4, "x1")
    with pytest.raises(FabricError, match="no link between e00 and e01"):
        link_ends(k4, "e00", "e01")


def test_far_port_is_the_other_end_of_the_same_link(fabric: Fabric) -> None:
    live = Live(fabric)
    for link in fabric.links:
        assert live.far_port[link.b, link.b_port] == link.a_port
        if link.a in fabric.switch:
            assert live.far_port[link.a, link.a_port] == link.b_port
