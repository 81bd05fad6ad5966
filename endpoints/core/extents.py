"""Which bytes of a buffer are here: disjoint ranges in order, neighbours joined."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Extents:
    """A set of bytes as ranges [start, stop). Ranges that arrive in order cost next to nothing."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, start: int, stop: int) -> None:
        """These bytes are here now, whether they were before or not."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)  # of those that touch or overlap the range
        last = bisect_right(self._starts, stop)
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def covers(self, start: int, stop: int) -> bool:
        """Whether all of these bytes are here."""
        at = bisect_right(self._starts, start) - 1
        return start >= stop or (at >= 0 and stop <= self._stops[at])

    @property
    def total(self) -> int:
        """Number of bytes."""
        return sum(self._stops) - sum(self._starts)
