"""What ranks send and receive, as files in memory: whoever runs a collective, it is judged by these from outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from endpoints.collectives.registry import Algorithm
from experiments.data import Data


class Buffers:
    """For each rank a file with what it contributes and one that it receives into, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder

    def prepare(self, algorithm: Algorithm, data: Data, ranks: int) -> None:
        """Write what every rank contributes; what it receives into is as long as the result and empty of it."""
        size = algorithm.buffer_bytes(ranks, data.size)
        for rank in range(ranks):
            self.data(rank).write_bytes(data.contribution(algorithm, ranks, rank).tobytes())
            with self.received(rank).open("wb") as file:
                file.truncate(size)

    def data(self, rank: int) -> Path:
        """What a rank contributes; empty where it has nothing to give."""
        return self._folder / f"data-{rank}"

    def received(self, rank: int) -> Path:
        """What a rank receives into."""
        return self._folder / f"buffer-{rank}"

    def wrong_bytes(self, algorithm: Algorithm, data: Data, ranks: int) -> int:
        """Bytes of all receive buffers together that are not what they must be."""
        wrong = 0
        for rank in range(ranks):
            path = self.received(rank)
            received = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
            wrong += data.wrong_bytes(algorithm, ranks, rank, received)
        return wrong
