"""What a work request amounts to, once it is checked: an algorithm, what it reads and writes, and its rounds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from endpoints.collectives.registry import Collective
from endpoints.core.communicator import Communicator
from endpoints.core.packets import U8
from endpoints.nic.entries import Status, Work
from endpoints.nic.rows import Rows


class Bad(Exception):
    """A work request that cannot be carried out, and the status with which it ends."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Round:
    """A slice of every block, one after the other in time. ``data`` and ``buffer`` are as in ``Rows.view``."""

    data: U8
    buffer: U8


@dataclass(frozen=True, slots=True)
class Job:
    """A work request that can be carried out."""

    work: Work
    algorithm: Collective
    rounds: tuple[Round, ...]


def check(work: Work, algorithms: Sequence[Collective], memory: Mapping[int, U8], comm: Communicator, rank: int) -> Job:
    """The job of ``rank``; :class:`Bad` if there is none. ``memory`` is what is registered, by key."""
    if work.algorithm >= len(algorithms):
        raise Bad(Status.LOCAL_OPERATION_ERROR, f"algorithm {work.algorithm}: there are {len(algorithms)}")
    algorithm = algorithms[work.algorithm]
    data, buffer = _view(work.data, memory), _view(work.buffer, memory)
    blocks = algorithm.roots(comm.size)
    if work.buffer.count != blocks:
        raise Bad(Status.LOCAL_LENGTH_ERROR, f"{algorithm.name} receives {blocks} blocks, not {work.buffer.count}")
    if algorithm.contributes(rank) and (work.data.count, work.data.length) != (1, work.buffer.length):
        given = work.data.count * work.data.length
        raise Bad(Status.LOCAL_LENGTH_ERROR, f"{algorithm.name}: {given} bytes for blocks of {work.buffer.length}")
    return Job(work, algorithm, (Round(data, buffer),))


def _view(rows: Rows, memory: Mapping[int, U8]) -> U8:
    if rows.key not in memory:
        raise Bad(Status.LOCAL_PROTECTION_ERROR, f"memory {rows.key} is not registered")
    try:
        return rows.view(memory[rows.key])
    except ValueError as problem:
        raise Bad(Status.LOCAL_PROTECTION_ERROR, str(problem)) from None
