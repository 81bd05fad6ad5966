"""How long endpoints wait before they call a peer dead, and before they give an operation up: by configuration alone.

Whoever breaks something must know both. An outage that is shorter than the one is to be got over, and is no excuse for
a failure; and by the other every operation has ended, one way or the other. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from endpoints.core.barrier import depth_of
from endpoints.core.config import Timing
from endpoints.core.lifecycle import AFTER_BARRIER_BOUNDS, barrier_bound
from experiments.communicators import communicator
from experiments.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Patience:
    """Times in nanoseconds. ``outage``: what cuts a host off for less is made good; ``operation``: none takes longer.

    ``peer``: a peer that has been silent for so long is dead.

    A peer is dead after the peer timeout without a sign of it. Its last sign may be older than the outage, and the next
    comes only when something is repeated after it; so an outage may look longer than it was, and is given the time for
    which a supplier that is silent is still waited for.
    """

    outage: int
    peer: int
    operation: int

    @classmethod
    def of(cls, scenario: Scenario) -> Patience:
        """The patience of a scenario's endpoints."""
        config = scenario.protocol
        comm = communicator(scenario.fabric, mtu=scenario.mtu, rate_bps=scenario.link_rate_bps)
        timing = Timing.of(comm, config)
        barrier = barrier_bound(config, timing, expected_at_most(scenario, timing.chunk_ns))
        return cls(
            outage=timing.peer_timeout_ns - timing.patience_ns,
            peer=timing.peer_timeout_ns,
            operation=(1 + AFTER_BARRIER_BOUNDS) * barrier + depth_of(scenario.ranks - 1) * timing.slack_ns,
        )


def expected_at_most(scenario: Scenario, chunk_ns: int) -> int:
    """Nanoseconds that no algorithm expects to need more of: every block in and out over one link, and a chunk each."""
    chunks = -(-scenario.size_bytes // scenario.mtu)
    return 2 * scenario.ranks * (chunks + 1) * chunk_ns
