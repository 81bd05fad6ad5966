"""Data movement for real: ports count what theory says, for multicast and for rings, wherever the ranks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.results import Run
from tests.e2e.command import NEEDS, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

ALL = ("--algorithm", "mcast_allgather,ring_allgather,ring_reduce_scatter", "--warmup", "0")


def both(folder: Path, *arguments: str) -> tuple[Run, Run]:
    """Multicast and ring in one run, verified, all ports agreeing, each within 2 % of its own theory.

    And a ring that adds, which moves what the other does.
    """
    done = run(folder, *arguments, *ALL)
    assert (done.code, done.err) == (0, "")
    multicast, ring, adding = done.summary.runs
    assert adding.link_bytes_theory == ring.link_bytes_theory
    for result in (multicast, ring, adding):
        assert result.verified
        assert result.port_mismatches == []
        assert total(result) == pytest.approx(sum(result.link_bytes_theory.values()), rel=0.02), result.algorithm
        assert sum(result.link_packets.values()) >= sum(result.link_packets_theory.values())
    return multicast, ring


def total(result: Run) -> int:
    return sum(result.link_bytes.values())


@pytest.mark.parametrize(("topology", "ratio"), [("fattree,k=4", 1.875), ("leafspine,leaves=2,spines=2,hosts=4", 1.75)])
def test_a_ring_moves_two_less_two_over_p_times_what_multicast_moves(
    tmp_path: Path, topology: str, ratio: float
) -> None:
    multicast, ring = both(tmp_path, "--topo", topology, "--size", "128KiB", "--bw", "50")
    assert total(ring) / total(multicast) == pytest.approx(ratio, rel=0.02)


def test_ranks_in_random_order_cost_the_ring_more_and_multicast_nothing(tmp_path: Path) -> None:
    topology = "leafspine,leaves=2,spines=2,hosts=4"
    multicast, ring = both(tmp_path, "--topo", topology, "--size", "64KiB", "--placement", "random", "--seed", "2",
                           "--capture", "0")  # fmt: skip
    assert sum(multicast.link_bytes_theory.values()) == 10 * 8 * ((64 << 10) + 16 * 70)
    assert total(ring) / total(multicast) > 1.9
