"""Which captured points a root's multicast passes one after the other."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import networkx as nx

from experiments.analysis.context import host_name
from experiments.analysis.points import Point
from topo.fabric import Fabric


class Paths:
    """The order of ``points`` in a fabric whose trees are shortest paths.

    Without a fabric all that is known is that a root's own link comes first.
    """

    def __init__(self, points: list[Point], fabric: Fabric | None) -> None:
        self._points = points
        self._fabric = fabric
        self._distances = cache(self._compute_distances)

    def upstream(self, root: int, point: int, carried: Collection[int]) -> int | None:
        """The last point before ``point`` that what ``root`` sends passes, out of those that carried some of it."""
        before = [other for other in carried if other != point and self._before(root, other, point)]
        return max(before, key=lambda other: self._depth(root, other), default=None)

    def _before(self, root: int, one: int, other: int) -> bool:
        if self._points[other].host == root:
            return False
        if self._points[one].host is not None:
            return self._points[one].host == root
        ends, target = self._ends(root, one), self._target(root, other)
        if ends is None or target is None:
            return False
        distance = self._distances(host_name(root))
        return distance[ends[1]] + self._distances(ends[1])[target] == distance[target]

    def _depth(self, root: int, point: int) -> int:
        ends = self._ends(root, point)
        return 0 if ends is None else self._distances(host_name(root))[ends[1]]

    def _target(self, root: int, point: int) -> str | None:
        """The node that leads into a point's link."""
        host = self._points[point].host
        if host is not None:
            return host_name(host) if self._fabric and host_name(host) in self._fabric.host else None
        ends = self._ends(root, point)
        return None if ends is None else ends[0]

    def _ends(self, root: int, point: int) -> tuple[str, str] | None:
        """The nodes at both ends of a point's link, the one nearer to the root first."""
        port = self._points[point].port
        if self._fabric is None or port is None or port[1] not in self._fabric.ports.get(port[0], {}):
            return None
        if host_name(root) not in self._fabric.host:
            return None
        ends = (port[0], self._fabric.ports[port[0]][port[1]])
        distance = self._distances(host_name(root))
        return ends if distance[ends[0]] <= distance[ends[1]] else (ends[1], ends[0])

    def _compute_distances(self, node: str) -> dict[str, int]:
        assert self._fabric is not None
        return dict(nx.single_source_shortest_path_length(self._fabric.graph, node))
