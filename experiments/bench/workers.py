"""Whether receive paths add up: packets per second of one process and of two on two cores, fed from full rings.

A process owns its queue pairs, ring, bitmap and buffer, as a worker of a NIC does, and shares nothing but the machine;
no sender competes for the cores. What two have of twice one's rate is what caches and memory leave them.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.bench.receive import RANKS, Scene, receiver, scene
from experiments.bench.target import judged

BATCH = 16
WORKERS = 2
TARGET = 1.7
"""Of two workers' rate on two cores to one's."""


def rate(given: Scene, passes: int) -> float:
    """Packets per second of wall time over so many passes; each ends with the buffer compared."""
    expected = np.concatenate(given.blocks)
    buffer = np.zeros(RANKS * len(given.blocks[0]), np.uint8)
    ring = np.empty_like(given.frames)
    spent = 0.0
    for _ in range(passes):
        buffer[:] = 0
        ring[:] = given.frames  # anew, since a frame is worked on where it lies
        station = receiver(given.comm, given.templates, given.blocks, buffer)
        before = time.perf_counter()
        for start in range(0, len(ring), BATCH):
            station.receive(ring[start : start + BATCH], given.lengths[start : start + BATCH], 1)
        spent += time.perf_counter() - before
        if not np.array_equal(buffer, expected):
            raise RuntimeError("the receive path delivered wrong bytes")
    return passes * len(ring) / spent


def side_by_side(work: Callable[[], float], cores: list[int]) -> list[float]:
    """What ``work`` gives in one process on each of ``cores``, all at the same time; RuntimeError if one fails."""
    context = multiprocessing.get_context("fork")
    together = context.Barrier(len(cores))

    def on(core: int, answer: Connection) -> None:
        os.sched_setaffinity(0, {core})
        together.wait()
        answer.send(work())

    pipes, processes = [], []
    for core in cores:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=on, args=(core, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        return [pipe.recv() for pipe in pipes]
    except EOFError:
        raise RuntimeError("a worker ended without an answer") from None
    finally:
        for process in processes:
            process.kill()
            process.join()


def bench_workers(passes: int) -> None:
    """One and two in turns; the table, and the median of the ratios."""
    cores = sorted(os.sched_getaffinity(0))[:WORKERS]
    if len(cores) < WORKERS:
        print(f"workers side by side: left out, {len(cores)} core and {WORKERS} workers")
        return
    work = partial(rate, scene(), passes)
    alone, together = [], []
    for _ in range(passes):
        alone.append(sum(side_by_side(work, cores[:1])))
        together.append(sum(side_by_side(work, cores)))
    table = Table(title=f"Receive paths side by side, each a process on a core of its own, median of {passes} turns")
    for column in ("workers", "packets/s", "of one"):
        table.add_column(column, justify="right")
    ratio = statistics.median(both / one for both, one in zip(together, alone, strict=True))
    table.add_row("1", f"{statistics.median(alone):,.0f}", "1.00")
    table.add_row(str(WORKERS), f"{statistics.median(together):,.0f}", f"{ratio:.2f}")
    Console().print(table)
    print(judged(f"two on two cores at least {TARGET:g} of one", f"{ratio:.2f}", met=ratio >= TARGET))
