"""When the next byte may leave: rates as integer nanoseconds, remainders carried so that fast links do not drift."""

from __future__ import annotations

SECOND = 1_000_000_000


def wire_ns(frame_bytes: int, rate_bps: int) -> int:
    """Nanoseconds that a frame occupies a link, rounded up."""
    return -(-frame_bytes * 8 * SECOND // rate_bps)


class Pacer:
    """A token bucket on absolute time: never more than ``depth_ns`` of the link's time ahead of the rate."""

    def __init__(self, rate_bps: int, depth_ns: int) -> None:
        self._rate = rate_bps
        self._depth = depth_ns
        self._free_at = 0
        self._remainder = 0

    def ready_at(self) -> int:
        """The time from which the next frame may be sent."""
        return self._free_at - self._depth

    def spend(self, frame_bytes: int, now: int) -> None:
        """Account for a frame that is sent now."""
        bits = frame_bytes * 8 * SECOND + self._remainder
        self._free_at = max(self._free_at, now) + bits // self._rate
        self._remainder = bits % self._rate
