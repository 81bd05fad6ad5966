"""How long multicast was interrupted: the time for which nothing of a stream came to a host that it was meant for.

A stream begins where any point saw it first and ends where any point saw it last, so that a host to which nothing came
any more is as much without service as one to which it came again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.points import Point
from experiments.analysis.streams import Key, Passage


@dataclass(frozen=True, slots=True)
class Outage:
    """From ``begin_ns`` to ``end_ns`` nothing of the stream ``key`` came by at ``point``."""

    key: Key
    point: int
    begin_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """How long that was."""
        return self.end_ns - self.begin_ns


def longest_outage(points: Sequence[Point], passed: Sequence[Passage]) -> Outage | None:
    """The longest of any stream on the own link of any receiving host; None where no stream has a receiver."""
    seen = {(passage.key, passage.point): passage.frames["time_ns"] for passage in passed}
    spans: dict[Key, tuple[int, int]] = {}
    for (key, _), times in seen.items():
        begin, end = spans.get(key, (int(times[0]), int(times[-1])))
        spans[key] = min(begin, int(times[0])), max(end, int(times[-1]))
    found: list[Outage] = []
    for key, (begin, end) in sorted(spans.items()):
        for at, point in enumerate(points):
            if point.host is not None and point.host != key.root:
                edges = np.array([begin, *seen.get((key, at), ()), end])
                widest = int(np.argmax(np.diff(edges)))
                found.append(Outage(key, at, int(edges[widest]), int(edges[widest + 1])))
    return max(found, key=lambda outage: outage.length_ns, default=None)
