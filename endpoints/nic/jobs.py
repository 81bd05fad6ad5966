"""What a work request amounts to, once it is checked: an algorithm, what it reads and writes, and its rounds. Pure.

Every rank comes to the same rounds, since what decides them is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from endpoints.collectives.registry import Collective
from endpoints.core.communicator import Communicator
from endpoints.core.packets import U8
from endpoints.nic import budget
from endpoints.nic.entries import ELEMENTS, Status, Work
from endpoints.nic.rows import Rows

NOTHING = Rows(0, 0, 0, 0, 1)
"""What a rank contributes that has nothing to give; the memory 0 is there always, and empty."""


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


def check(
    work: Work,
    algorithms: Sequence[Collective],
    memory: Mapping[int, U8],
    comm: Communicator,
    rank: int,
    nic: budget.Nic,
) -> Job:
    """The job of ``rank``; :class:`Bad` if there is none. ``memory`` is what is registered, by key."""
    if work.algorithm >= len(algorithms):
        raise Bad(Status.LOCAL_OPERATION_ERROR, f"algorithm {work.algorithm}: there are {len(algorithms)}")
    if work.element >= len(ELEMENTS):
        raise Bad(Status.LOCAL_OPERATION_ERROR, f"element {work.element}: there are {len(ELEMENTS)}")
    algorithm = algorithms[work.algorithm].adding(ELEMENTS[work.element])
    data, buffer = work.data, work.buffer
    for rows in (data, buffer):
        _view(rows, memory)
    takes, gives = algorithm.does.data_blocks(comm.size), algorithm.does.buffer_blocks(comm.size)
    if buffer.count != gives:
        raise Bad(Status.LOCAL_LENGTH_ERROR, f"{algorithm.name} receives {gives} blocks, not {buffer.count}")
    if algorithm.contributes(rank) and (data.count, data.length) != (takes, buffer.length):
        found = f"not {data.count} of {data.length} bytes"
        raise Bad(Status.LOCAL_LENGTH_ERROR, f"{algorithm.name} takes {takes} blocks of {buffer.length}, {found}")
    if not algorithm.contributes(rank):
        data = NOTHING
    step = round_bytes(algorithm, buffer.length, comm, nic)
    parts = ((at, min(at + step, buffer.length)) for at in range(0, max(1, buffer.length), step))
    rounds = (Round(_view(_part(data, part), memory), _view(buffer.part(*part), memory)) for part in parts)
    return Job(work, algorithm, tuple(rounds))


def round_bytes(algorithm: Collective, block_bytes: int, comm: Communicator, nic: budget.Nic) -> int:
    """Bytes of each block that a round carries; :class:`Bad` where not even a chunk fits.

    Only multicast has a state of each chunk: what is point to point needs no memory that grows, and has one round.
    """
    if not algorithm.multicast or not block_bytes:
        return max(1, block_bytes)
    roots = algorithm.roots(comm.size)
    try:
        plan = budget.plan(budget.Collective(comm.size, roots, block_bytes, comm.mtu, comm.chunk_bits), nic)
    except budget.DoesNotFit as problem:
        raise Bad(Status.LOCAL_LENGTH_ERROR, str(problem)) from None
    return plan.round_bytes


def _part(rows: Rows, part: tuple[int, int]) -> Rows:
    return rows if rows is NOTHING else rows.part(*part)


def _view(rows: Rows, memory: Mapping[int, U8]) -> U8:
    if rows.key not in memory:
        raise Bad(Status.LOCAL_PROTECTION_ERROR, f"memory {rows.key} is not registered")
    try:
        return rows.view(memory[rows.key])
    except ValueError as problem:
        raise Bad(Status.LOCAL_PROTECTION_ERROR, str(problem)) from None
