"""An application: a large Allgather and a small one on its NIC, each alone, then both outstanding.

They are posted together, and then the small one when the large one is well under way.

``treecast app experiments/bench/two_sizes.py`` prints for each host the seconds of each, as JSON; it fails if a byte of
any is wrong.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import numpy as np

from endpoints.core.packets import U8

if TYPE_CHECKING:
    from endpoints.nic.verbs import Nic

LARGE, SMALL = 1 << 20, 1 << 17
"""Bytes of each rank."""
LATER_S = 0.1
"""When the small one is posted in the midst of the large one, which takes three times as long or more at 50 Mbit/s."""
TURNS = 3
PATIENCE_S = 60.0


class Allgather:
    """Buffers of one size, registered, and what must be in them afterwards."""

    def __init__(self, nic: Nic, size: int) -> None:
        blocks = [np.random.default_rng([size, rank]).integers(0, 256, size, np.uint8) for rank in range(nic.size)]
        self._nic = nic
        self._expected = np.concatenate(blocks)
        self._received: U8 = nic.allocate(size * nic.size)
        data = nic.allocate(size)
        data[:] = blocks[nic.rank]
        self._data, self._buffer = nic.register(data), nic.register(self._received)

    def post(self) -> None:
        """Begin; the buffer is empty of the result."""
        self._received[:] = 0xA5
        self._posted = time.monotonic()
        self._handle = self._nic.allgather_async(self._data, self._buffer)

    def wait(self) -> float:
        """Seconds since it was posted, when it has ended; RuntimeError if it brought wrong bytes."""
        self._handle.wait(PATIENCE_S)
        spent = time.monotonic() - self._posted
        if not np.array_equal(self._received, self._expected):
            raise RuntimeError(f"Allgather of {len(self._received)} bytes: wrong bytes")
        return spent


def main(nic: Nic) -> str:
    """Seconds of each turn, by what was measured."""
    large, small, meeting = Allgather(nic, LARGE), Allgather(nic, SMALL), Allgather(nic, 4)
    found: dict[str, list[float]] = {}

    def measure(apart_s: float = 0.0, **what: Allgather) -> None:
        meeting.post()
        meeting.wait()  # all begin at about the same time
        for number, it in enumerate(what.values()):
            time.sleep(apart_s if number else 0.0)
            it.post()
        for name, it in reversed(what.items()):  # the small one ends first
            found.setdefault(name, []).append(it.wait())

    for _ in range(TURNS):
        measure(large_alone=large)
        measure(small_alone=small)
        measure(large_together=large, small_together=small)
        measure(LATER_S, large_amidst=large, small_amidst=small)
    return json.dumps(found)
