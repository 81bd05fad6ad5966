"""A burst of full frames that finds out what a link carries: how long it must be, and what its arrivals say.

A shaped link lets through at once what its token bucket holds. From then on frames arrive at the link's rate, singly,
or, where HTB has hysteresis, in groups of a bucket: it lets frames out until it is a whole bucket in debt, and waits
until it has no debt. So the first frames, two buckets of them, are left out, and the rate is the slope of the line
through whole groups of the others. Pure; times in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from topo.shaping import LinkSpec

_T = TypeVar("_T")

LEAST_GROUPS = 10
"""However slow the link; a slope through fewer depends on each."""

LEAST_S = 0.02
"""However fast it is: the kernel's timers are late by tens of microseconds."""

LONGEST_S = 1.0
"""A link that needs longer for its burst is not tried."""

BUDGET_S = 0.5
"""Time for all links together; as many are tried as can be in it."""

FRAMES_PER_S = 24_000
"""On all links that are tried at once: a third of one core."""


@dataclass(frozen=True, slots=True)
class Burst:
    """``frames`` frames of ``frame_bytes`` over a link of ``rate_bps``; the first ``head`` of them say nothing."""

    frames: int
    head: int
    frame_bytes: int
    rate_bps: int

    @classmethod
    def of(cls, spec: LinkSpec) -> Burst | None:
        """The burst for a link; None where its queue does not hold it, or the link is too slow for it."""
        head = 2 * spec.burst_bytes // spec.frame_bytes + 1
        group = spec.burst_bytes // spec.frame_bytes + 1
        groups = max(LEAST_GROUPS, int(LEAST_S * spec.rate_bps / 8 / spec.frame_bytes / group))
        frames = head + groups * group
        burst = cls(frames, head, spec.frame_bytes, spec.rate_bps)
        return burst if frames <= spec.queue_packets and burst.seconds <= LONGEST_S else None

    @property
    def seconds(self) -> float:
        """Time that the link needs for it."""
        return self.frames * self.frame_bytes * 8 / self.rate_bps

    @property
    def at_once(self) -> int:
        """How many links may be tried at the same time."""
        return max(1, int(FRAMES_PER_S * self.seconds / self.frames))

    def chosen(self, links: Sequence[_T]) -> list[_T]:
        """Those for which there is time, evenly chosen: all if that goes."""
        most = min(len(links), self.at_once * max(1, int(BUDGET_S / self.seconds)))
        return [links[i * len(links) // most] for i in range(most)]

    def carried_bps(self, arrivals_ns: Sequence[int]) -> int:
        """Bit/s that the link carried, by the times at which frames came: their rate, less the part that was lost.

        0 where too few came to tell.
        """
        times = np.asarray(arrivals_ns[self.head :], np.int64)
        if len(times) < 2 or times[-1] == times[0]:
            return 0
        seconds = (times - times[0]) / 1e9
        frames_per_second = np.polyfit(seconds, np.arange(len(times)), 1)[0]
        return round(float(frames_per_second) * self.frame_bytes * 8 * len(arrivals_ns) / self.frames)
