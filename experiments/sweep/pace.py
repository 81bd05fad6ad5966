"""How long the rest of a sweep takes, by what its points took so far.

A point takes at least the time that its operations need on their links (theory); what it takes beyond that, building
the fabric above all, is learnt from the points that are done: from those of the same configuration, else from those on
the same topology with the same algorithms, else on the same topology, else from all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from experiments import theory
from experiments.scenario import Scenario
from experiments.sweep.grid import Point


def least_seconds(scenario: Scenario) -> float:
    """Seconds that the operations of a scenario take at least, warm-up included."""
    rounds = scenario.warmup + scenario.iterations
    return rounds * sum(
        theory.limit_seconds(entry.kind, scenario.ranks, scenario.size_bytes, scenario.link_rate_bps)
        for entry in scenario.collectives
    )


class Pace:
    """What points took beyond their least time, by kind."""

    def __init__(self) -> None:
        self._beyond: dict[Hashable, list[float]] = defaultdict(list)

    def took(self, point: Point, seconds: float) -> None:
        """A point is over."""
        for kind in _kinds(point):
            self._beyond[kind].append(seconds - least_seconds(point.scenario))

    def expect(self, point: Point) -> float | None:
        """Seconds that a point will take; None before anything is known."""
        for kind in _kinds(point):
            if kind in self._beyond:
                beyond = self._beyond[kind]
                return max(0.0, least_seconds(point.scenario) + sum(beyond) / len(beyond))
        return None

    def left(self, points: Iterable[Point]) -> float | None:
        """Seconds that all of ``points`` will take; None before anything is known."""
        expected = [self.expect(point) for point in points]
        known = [seconds for seconds in expected if seconds is not None]
        return sum(known) if len(known) == len(expected) else None


def _kinds(point: Point) -> tuple[Hashable, ...]:
    """What a point is like, most exact first."""
    scenario = point.scenario
    return point.configuration, (scenario.topology, scenario.algorithms), scenario.topology, None
