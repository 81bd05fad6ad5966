"""How late a loop serves what is due: the longest delay, and how many there were by size.

A host that naps on purpose does not nap beyond its next departure, so lateness is what the machine took from it: time
in which it was ready and another process had the processor.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

BOUNDS_NS: Final = (1_000_000, 5_000_000, 20_000_000, 50_000_000)
"""Upper bounds of the histogram's classes; one more class has what is beyond."""


class Lateness:
    """``longest_ns``, and ``counts`` by class of :data:`BOUNDS_NS`."""

    def __init__(self) -> None:
        self.longest_ns = 0
        self.counts = [0] * (len(BOUNDS_NS) + 1)

    def note(self, late_ns: int) -> None:
        """Something was served ``late_ns`` after it was due; not late at all if negative."""
        late_ns = max(0, late_ns)
        self.longest_ns = max(self.longest_ns, late_ns)
        self.counts[bisect_right(BOUNDS_NS, late_ns)] += 1
