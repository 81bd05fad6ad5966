"""How the links of a scenario are shaped. Pure."""

from __future__ import annotations

from experiments.scenario import Scenario
from topo.shaping import LinkSpec

CONTROL_HEADROOM = 64
"""Bytes that the longest RoCE frame has beyond its payload, Ethernet header aside."""
SMALLEST_MTU = 1500


def link_spec(scenario: Scenario) -> LinkSpec:
    """Rate, delay, queue, and the MTU that a chunk needs."""
    return LinkSpec(
        rate_bps=scenario.link_rate_bps,
        delay_us=scenario.shaped_delay_ns // 1000,
        queue_packets=scenario.queue_packets,
        mtu=max(SMALLEST_MTU, scenario.mtu + CONTROL_HEADROOM),
    )
