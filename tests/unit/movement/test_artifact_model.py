"""The published traffic model: its printed figures again, and its errors by cause."""

from __future__ import annotations

import pytest

from controller.live import Live
from controller.routes import unicast_routes
from controller.trees import plan_tree
from endpoints.collectives import linear_allgather, recursive_doubling_allgather, ring_allgather
from experiments.movement import artifact_model as model
from experiments.movement.link_theory import block_crossings, routed_paths
from topo.addressing import make_host, make_switch
from topo.fabric import Fabric, Link

PRINTED = {  # ranks: linear, ring, recursive doubling, multicast
    8: (112, 112, 112, 64),
    16: (480, 480, 480, 256),
    32: (2496, 2046, 2496, 1088),
    64: (13184, 8568, 13184, 4544),
    128: (59136, 35052, 59136, 18048),
    256: (249344, 141780, 249344, 71936),
    512: (1022976, 570276, 1022976, 287232),
    1024: (4143104, 2287428, 4143104, 1147904),
}
EXACT_1024 = (6191104, 2291520, 6191104, 1146880)


def tree_of(ranks: int) -> Fabric:
    """The model's fabric with one core: what a transfer crosses does not depend on how many there are."""
    hosts = [make_host(i, f"10.{i >> 8}.{i & 0xFF}.2") for i in range(ranks)]
    tors = [make_switch(f"t{i}", 0, "edge", i) for i in range(-(-ranks // model.HOSTS_PER_TOR))]
    pods = [make_switch(f"p{i}", 1, "aggregation", i) for i in range(-(-ranks // model.HOSTS_PER_POD))]
    core = make_switch("c0", 2, "core", 0)
    return Fabric(
        "radix32",
        {},
        tuple(hosts),
        (*tors, *pods, core),
        (
            *(Link(h.name, 0, tors[i // 16].name, 1 + i % 16) for i, h in enumerate(hosts)),
            *(Link(tor.name, 17, pods[i // 2].name, 1 + i % 2) for i, tor in enumerate(tors)),
            *(Link(pod.name, 3, core.name, 1 + i) for i, pod in enumerate(pods)),
        ),
    )


@pytest.mark.parametrize("ranks", model.RANKS)
def test_the_printed_figures_are_reproduced(ranks: int) -> None:
    assert tuple(count.artifact for count in model.counts(ranks)) == PRINTED[ranks]


@pytest.mark.parametrize("ranks", model.RANKS)
def test_the_causes_explain_the_difference_to_the_last_block(ranks: int) -> None:
    for count in model.counts(ranks):
        assert count.artifact - sum(count.excess.values()) == count.exact, count


def test_exact_figures_at_1024() -> None:
    linear, ring, doubling, multicast = (count.exact for count in model.counts(1024))
    assert (linear, ring, doubling, multicast) == EXACT_1024
    assert ring * 1024 == multicast * 2046, "2 - 2/P"
    assert round(linear / multicast, 2) == 5.40


@pytest.mark.parametrize("ranks", [8, 32, 128])
def test_exact_figures_are_those_of_a_fabric_with_the_controllers_routes_and_tree(ranks: int) -> None:
    fabric = tree_of(ranks)
    live, hosts = Live(fabric), list(fabric.host)
    paths = routed_paths(fabric, unicast_routes(live), hosts)
    schedules = (linear_allgather, ring_allgather, recursive_doubling_allgather)
    counted = [block_crossings(schedule.transfers(ranks, 1), paths) for schedule in schedules]
    tree = plan_tree(live, hosts)
    assert tree is not None
    assert [*counted, len(tree.edges) * ranks] == [count.exact for count in model.counts(ranks)]


def test_each_quirk_is_where_it_should_be() -> None:
    by_name = {count.algorithm: count for count in model.counts(64)}
    assert by_name["ring"].excess == {model.BACKWARD_ACROSS: -4 * 63}, "the last rank back to the first"
    assert by_name["linear"].excess == {model.BACKWARD_IN_POD: -2 * 512, model.BACKWARD_ACROSS: -4 * 1024}
    assert by_name["multicast"].excess == {model.OWN_POD_TWICE: 64}
    assert all(not count.excess for count in model.counts(16)), "below one switch the model is exact"


def test_ranks_that_recursive_doubling_cannot_do_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        model.counts(48)
