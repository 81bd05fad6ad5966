"""How often each packet has been seen before: what makes a retransmission a new throw."""

from __future__ import annotations

import numpy as np

from endpoints.impairments.fates import I64, U64

GENERATION = 1 << 18
"""Packets remembered for certain: a retransmission comes within thousands, and memory must not grow for ever."""


class Sightings:
    """Counts by identity. At least the last ``generation`` different packets are remembered, at most twice as many."""

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def count(self, keys: U64) -> I64:
        """Earlier sightings of each of ``keys``, in order; they are sightings themselves for what follows."""
        young, old = self._young, self._old
        attempts: list[int] = []
        for key in keys.tolist():
            seen = young.get(key)
            if seen is None:
                seen = old.get(key, 0)
            attempts.append(seen)
            young[key] = seen + 1
        if len(young) >= self._generation:
            self._young, self._old = {}, young
        return np.array(attempts, np.int64)
