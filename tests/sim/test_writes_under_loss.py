"""RDMA WRITEs under loss: as fast with small packets as with large ones, and no end that is none."""

from __future__ import annotations

import pytest

from endpoints.core.communicator import FRAME_OVERHEAD_UD
from endpoints.core.events import Failed
from tests.sim.scenarios import MS, Case, make_world, run_case, run_once

MTUS = (256, 1024, 4096)


def seconds_per_byte(mtu: int, seed: int) -> float:
    """What a ring Allgather takes at 5 % loss, for each byte that its packets have on a link."""
    case = Case(ranks=4, size=1 << 19, algorithm="ring_allgather", seed=seed, mtu=mtu, rate_bps=50_000_000, loss=0.05)
    return run_case(case)[0].seconds * mtu / (mtu + FRAME_OVERHEAD_UD)


@pytest.mark.parametrize("mtu", MTUS[:2])
def test_a_ring_under_loss_takes_no_longer_with_small_packets(mtu: int) -> None:
    """At most 1.5 times as long for the same bytes on links."""
    small, large = (sum(seconds_per_byte(size, seed) for seed in range(3)) for size in (mtu, MTUS[-1]))
    assert small <= 1.5 * large


@pytest.mark.parametrize("at_ms", [5, 15, 30])
def test_a_root_whose_receiver_dies_with_writes_under_way_has_not_completed(at_ms: int) -> None:
    case = Case(ranks=2, size=1 << 16, algorithm="binomial_broadcast", deaths=((1, at_ms),))
    end = run_once(make_world(case), case).ends[0]
    assert isinstance(end, Failed)
    assert end.suspect == 1
    assert end.now > at_ms * MS
