"""What a burst says of a link, on a model of HTB with and without hysteresis."""

from __future__ import annotations

from itertools import pairwise

import pytest

from experiments.fidelity.burst import BUDGET_S, FRAMES_PER_S, Burst
from topo.shaping import LinkSpec

RATES = (1_000_000, 50_000_000, 100_000_000, 1_000_000_000)


def burst_of(spec: LinkSpec) -> Burst:
    burst = Burst.of(spec)
    assert burst is not None
    return burst


def arrivals(spec: LinkSpec, frames: int, rate_bps: float, *, hysteresis: bool) -> list[int]:
    """Times in ns at which a link that is shaped to ``rate_bps`` lets ``frames`` frames out (kernel: sch_htb.c)."""
    per_ns = rate_bps / 8e9
    now, tokens, times = 0.0, float(spec.burst_bytes), []
    for _ in range(frames):
        if tokens < (-spec.burst_bytes if hysteresis else 0):
            now, tokens = now - tokens / per_ns, 0.0
        times.append(round(now))
        tokens -= spec.frame_bytes
    return times


@pytest.mark.parametrize("hysteresis", [False, True])
@pytest.mark.parametrize("mtu", [1500, 4160])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("ratio", [0.5, 0.96, 1.0, 1.04, 3.0])
def test_the_rate_is_that_of_the_link_whatever_was_asked_for(
    rate: int, mtu: int, ratio: float, hysteresis: bool
) -> None:
    spec = LinkSpec(rate_bps=rate, queue_packets=5000, mtu=mtu)
    burst = Burst.of(spec)
    if burst is None:
        assert rate == 1_000_000, "only slow links are not tried"
        return
    times = arrivals(spec, burst.frames, rate * ratio, hysteresis=hysteresis)
    assert burst.carried_bps(times) == pytest.approx(rate * ratio, rel=0.004)


def test_frames_that_did_not_arrive_count() -> None:
    spec = LinkSpec(rate_bps=50_000_000)
    burst = burst_of(spec)
    times = arrivals(spec, burst.frames, 50e6, hysteresis=False)
    assert burst.carried_bps(times[: burst.frames * 3 // 4]) == pytest.approx(0.75 * 50e6, rel=0.02)
    assert burst.carried_bps(times[: burst.head + 1]) == 0
    assert burst.carried_bps([]) == 0


@pytest.mark.parametrize("spec", [LinkSpec(50_000_000, queue_packets=20), LinkSpec(100_000)])
def test_a_short_queue_and_a_slow_link_are_not_tried(spec: LinkSpec) -> None:
    assert Burst.of(spec) is None


@pytest.mark.parametrize("rate", [5_000_000, 50_000_000, 1_000_000_000])
def test_a_probe_takes_no_longer_than_its_budget_and_no_more_of_the_machine_than_its_share(rate: int) -> None:
    burst = burst_of(LinkSpec(rate_bps=rate, mtu=4160))
    chosen = burst.chosen(range(10_000))
    rounds = -(-len(chosen) // burst.at_once)
    assert rounds == 1 or rounds * burst.seconds <= BUDGET_S
    assert burst.at_once == 1 or burst.at_once * burst.frames / burst.seconds <= FRAMES_PER_S


def test_links_are_chosen_evenly_and_all_of_them_if_there_is_time() -> None:
    burst = burst_of(LinkSpec(rate_bps=50_000_000, mtu=4160))
    assert burst.chosen(range(20)) == list(range(20))
    some = burst.chosen(range(2000))
    steps = {later - earlier for earlier, later in pairwise(some)}
    assert some[0] == 0
    assert max(steps) - min(steps) <= 1
