"""What the ranks send, and whether what they received is that: real bytes, compared one by one.

Data is either seeded random bytes, different in every block, or a file cut into blocks: one per rank, or as many per
rank as there are ranks where each gives one for every other. A file decides the size itself (``ceil(file size /
blocks)``, so that all of it takes part) unless a size is given; then its first ``blocks * size`` bytes take part. What
a file lacks is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator  # now: its import, which NumPy puts off, swallows a stop signal

from endpoints.collectives.elements import Element
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


def block_size(total: int, blocks: int, granularity: int = 1) -> int:
    """Bytes of each block, a multiple of ``granularity``, when ``total`` bytes are split into so many."""
    return -(-total // (blocks * granularity)) * granularity


@dataclass(frozen=True, slots=True)
class Data:
    """The blocks of a run: ``size`` bytes each; from ``path`` where there is one, else from ``seed``."""

    size: int
    seed: int
    path: Path | None = None

    def block(self, index: int) -> U8:
        """Block ``index``, counted through all ranks."""
        if self.path is None:
            generator = Generator(PCG64([self.seed, index]))
            return np.frombuffer(generator.bytes(self.size), dtype=np.uint8)
        block = np.zeros(self.size, dtype=np.uint8)
        with self.path.open("rb") as file:
            file.seek(index * self.size)
            file.readinto(block)  # type: ignore[arg-type]  # numpy arrays are writable buffers
        return block

    def contribution(self, algorithm: Algorithm, ranks: int, rank: int) -> U8:
        """What ``rank`` puts in; empty where it has nothing to give."""
        if not algorithm.contributes(rank):
            return np.zeros(0, dtype=np.uint8)
        blocks = algorithm.does.data_blocks(ranks)
        return np.concatenate([self.block(rank * blocks + index) for index in range(blocks)])

    def result(self, algorithm: Algorithm, ranks: int, rank: int) -> Iterator[U8]:
        """The blocks that ``rank`` must receive, in order."""
        if not algorithm.does.reduces:
            yield from map(self.block, range(algorithm.does.buffer_blocks(ranks)))
            return
        total = np.zeros(self.size, dtype=np.uint8)
        for index in range(rank, ranks * ranks, ranks):
            Element.UINT32.add(total, self.block(index), total)
        yield total

    def wrong_bytes(self, algorithm: Algorithm, ranks: int, rank: int, received: U8) -> int:
        """Bytes of a rank's receive buffer that are not what it must be; each byte missing or too many is one."""
        wrong = abs(len(received) - algorithm.buffer_bytes(ranks, self.size))
        for index, block in enumerate(self.result(algorithm, ranks, rank)):
            part = received[index * self.size : (index + 1) * self.size]
            wrong += int(np.count_nonzero(part != block[: len(part)]))
        return wrong
