"""What the ranks send, and whether what they received is that: real bytes, compared one by one.

Data is either seeded random bytes, different for every rank, or a file cut into one block per rank. A file decides the
size itself (``ceil(file size / ranks)`` per rank, so that all of it takes part) unless a size is given; then its first
``ranks * size`` bytes take part. What a file lacks is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator  # now: its import, which NumPy puts off, swallows a stop signal

from endpoints.collectives.registry import Algorithm
from endpoints.core.packets import U8
from experiments.errors import UserError


def file_size(path: Path) -> int:
    """Bytes of the input file; :class:`UserError` where it cannot be one."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
    except OSError as problem:
        raise UserError(f"input {str(path)!r}: {problem.strerror or problem}") from None
    if size == 0:
        raise UserError(f"input {str(path)!r}: the file is empty")
    return size


def size_per_rank(total: int, blocks: int) -> int:
    """Bytes of each block when ``total`` bytes are split over ``blocks`` ranks."""
    return -(-total // blocks)


@dataclass(frozen=True, slots=True)
class Data:
    """The blocks of a run: ``size`` bytes each; from ``path`` where there is one, else from ``seed``."""

    size: int
    seed: int
    path: Path | None = None

    def block(self, index: int) -> U8:
        """Block ``index``, which the rank of that number contributes."""
        if self.path is None:
            generator = Generator(PCG64([self.seed, index]))
            return np.frombuffer(generator.bytes(self.size), dtype=np.uint8)
        block = np.zeros(self.size, dtype=np.uint8)
        with self.path.open("rb") as file:
            file.seek(index * self.size)
            file.readinto(block)  # type: ignore[arg-type]  # numpy arrays are writable buffers
        return block

    def contribution(self, algorithm: Algorithm, rank: int) -> U8:
        """What ``rank`` puts in; empty where it has nothing to give."""
        return self.block(rank) if algorithm.contributes(rank) else np.zeros(0, dtype=np.uint8)

    def wrong_bytes(self, algorithm: Algorithm, ranks: int, received: U8) -> int:
        """Bytes of a rank's receive buffer that are not what was sent; each byte missing or too many is one."""
        blocks = algorithm.roots(ranks)
        wrong = abs(len(received) - blocks * self.size)
        for index in range(blocks):
            part = received[index * self.size : (index + 1) * self.size]
            wrong += int(np.count_nonzero(part != self.block(index)[: len(part)]))
        return wrong
