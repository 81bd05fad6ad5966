"""What the application of a host does in an overlap experiment: it computes, alone or while its NIC communicates.

All but :func:`compute` are called there (``endpoints.io.commands.Call``), one after the other. What is done before and
after, registering memory above all, is a function of its own, so that it stays out of what is accounted.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from endpoints.io.commands import RankResult
from endpoints.io.process import UNWRITTEN, map_file
from endpoints.nic.verbs import CollectiveFailed, Handle, Nic, Region

SIDE = 256
"""Of the matrices, of which three of doubles are 1.5 MiB: more than a core's first cache, less than what all share."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a kernel took, in ns: time, and CPU time of the process. ``failure`` is why the collective beside it did."""

    wall_ns: int
    cpu_ns: int
    failure: str | None = None


@dataclass(slots=True)
class _Held:
    """What an application has prepared, and the work request that it has posted."""

    algorithm: str
    data: Region
    buffer: Region
    handle: Handle | None = None


_held: dict[Nic, _Held] = {}
"""By NIC: calls come one by one, and what one prepares the next one needs."""


def compute(products: int) -> Took:
    """The kernel: so many products of two matrices of :data:`SIDE` rows and columns."""
    left, right = _matrix(1), _matrix(2)
    into = np.empty_like(left)
    wall, cpu = time.monotonic_ns(), time.process_time_ns()
    for _ in range(products):
        np.matmul(left, right, out=into)
    return Took(time.monotonic_ns() - wall, time.process_time_ns() - cpu)


def _matrix(seed: int) -> npt.NDArray[Any]:
    return np.random.Generator(np.random.PCG64(seed)).random((SIDE, SIDE))


def pin(_nic: Nic, cpu: int) -> None:
    """Run on this CPU alone."""
    os.sched_setaffinity(0, {cpu})


def alone(_nic: Nic, products: int) -> Took:
    """The kernel, while nothing is communicated."""
    return compute(products)


def prepare(nic: Nic, algorithm: str, data: Path, buffer: Path) -> None:
    """Register what is sent, and what is received into, which has all its pages then."""
    into = map_file(buffer, "r+")
    into[:] = UNWRITTEN
    _held[nic] = _Held(algorithm, nic.register(map_file(data, "r+")), nic.register(into))


def communicate(nic: Nic, start_at: int, products: int) -> Took:
    """Post the collective, which begins at ``start_at`` (monotonic ns); compute meanwhile; wait for its end."""
    held = _held[nic]
    held.handle = nic.post(held.algorithm, held.data, held.buffer, start_at)
    time.sleep(max(0, start_at - time.monotonic_ns()) / 1e9)
    took = compute(products) if products else Took(0, 0)
    try:
        held.handle.wait()
    except CollectiveFailed as problem:
        return Took(took.wall_ns, took.cpu_ns, str(problem))
    return took


def conclude(nic: Nic) -> RankResult:
    """What the NIC says of the collective, whose memory it lets go of."""
    held = _held.pop(nic)
    assert held.handle is not None
    result = nic.result(held.handle)
    for region in (held.data, held.buffer):
        nic.deregister(region)
    return result
