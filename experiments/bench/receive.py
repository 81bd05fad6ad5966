"""What a received packet costs: CPU time per 4 KiB packet at several batch sizes, beside Scapy's dissection of it.

All in one process, so that the ratios hold on any machine: the median over passes, from frames as they lie in a packet
ring to bytes in the receive buffer. That is address, queue pair and length checks, the ICRC, placement by sequence
number, and the bitmap.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table
from scapy.layers.l2 import Ether

from endpoints.collectives.registry import collective
from endpoints.core.barrier import Step
from endpoints.core.communicator import Communicator
from endpoints.core.endpoint import Endpoint
from endpoints.core.layout import max_frame_length
from endpoints.core.messages import Kind, Message
from endpoints.core.packets import U8, UdBurst
from endpoints.core.states import Phase
from endpoints.io.slots import FRAME, Geometry
from endpoints.station import Lengths, Station
from endpoints.wire.codec import Codec
from endpoints.wire.templates import Templates, build_templates
from experiments.bench.target import judged
from experiments.communicators import communicator
from topo.registry import parse_topology

MTU = 4096
RANKS = 16
BLOCK_BYTES = 1 << 20
RATE_BPS = 50_000_000
DEPTH = 1024
"""Slots of the ring, as in a run."""
BATCHES = (1, 4, 16, 64)
DISSECTED = 200
TARGET_US = 5.0
"""Of CPU per packet at a batch of 16, ICRC included."""


def incoming(comm: Communicator, templates: Templates, blocks: list[U8]) -> tuple[U8, Lengths]:
    """What rank 0 receives in one Allgather, the roots' chunks interleaved: shape (n, slot) as in a packet ring."""
    per_block = BLOCK_BYTES // MTU
    frames = []
    for root in range(1, RANKS):
        ids = np.arange(per_block, dtype=np.uint32) + np.uint32(root * per_block)
        payloads = list(blocks[root].reshape(-1, MTU))
        burst = UdBurst(0, ids, ids | np.uint32(1 << comm.chunk_bits), payloads)
        frames.append(list(Codec(comm, root, templates).encode(burst)))
    slot = Geometry.for_frames(max_frame_length(MTU), 1).slot_size - FRAME
    ring = np.zeros((per_block * (RANKS - 1), slot), np.uint8)
    lengths = np.zeros(len(ring), np.int32)
    for index in range(per_block):
        for root in range(RANKS - 1):
            row, frame = index * (RANKS - 1) + root, frames[root][index]
            ring[row, : len(frame)] = frame
            lengths[row] = len(frame)
    return ring, lengths


def receiver(comm: Communicator, templates: Templates, blocks: list[U8], buffer: U8) -> Station:
    """Rank 0 in the fast path of the first operation: the barrier is behind it."""
    endpoint = Endpoint(comm, 0)
    make = partial(collective("mcast_allgather").make, data=blocks[0], buffer=buffer)
    operation = endpoint.start(make, 0)
    for rank in range(1, RANKS):
        operation.on_message(rank, Message(Kind.BARRIER, operation.op, (Step.ARRIVED,)), 0)
    if operation.phase is not Phase.MULTICAST:
        raise RuntimeError(f"the barrier was not passed: {operation.phase}")
    return Station(endpoint, Codec(comm, 0, templates))


@dataclass(frozen=True, slots=True)
class Scene:
    """One Allgather of random ``blocks``, and what rank 0 receives in it: ``frames`` as :func:`incoming` has them."""

    comm: Communicator
    templates: Templates
    blocks: list[U8]
    frames: U8
    lengths: Lengths


def scene() -> Scene:
    """The same at every call."""
    comm = communicator(parse_topology("fattree,k=4"), mtu=MTU, rate_bps=RATE_BPS)
    templates = build_templates()
    rng = np.random.default_rng(1)
    blocks = [rng.integers(0, 256, BLOCK_BYTES, dtype=np.uint8) for _ in range(RANKS)]
    return Scene(comm, templates, blocks, *incoming(comm, templates, blocks))


def receive_us(batch: int, passes: int) -> float:
    """CPU microseconds per packet at ``batch`` frames a call; every pass ends with the buffer compared."""
    given = scene()
    ring, buffer = np.zeros((DEPTH, given.frames.shape[1]), np.uint8), np.zeros(RANKS * BLOCK_BYTES, np.uint8)
    costs = []
    for _ in range(passes):
        buffer[:] = 0  # and in memory before the clock starts
        station = receiver(given.comm, given.templates, given.blocks, buffer)
        costs.append(feed_us(station, given.frames, given.lengths, ring, batch) / len(given.frames))
        if not np.array_equal(buffer, np.concatenate(given.blocks)):
            raise RuntimeError("the receive path delivered wrong bytes")
    return statistics.median(costs)


def feed_us(station: Station, frames: U8, lengths: Lengths, ring: U8, batch: int) -> float:
    """Put a batch of frames into the ring as the kernel would, then hand it over; only the latter counts."""
    spent, slot = 0, 0
    for start in range(0, len(frames), batch):
        arrived = frames[start : start + batch]
        if slot + len(arrived) > DEPTH:
            slot = 0
        rows = ring[slot : slot + len(arrived)]
        rows[:] = arrived
        slot += len(arrived)
        before = time.thread_time_ns()
        station.receive(rows, lengths[start : start + batch], 1)
        spent += time.thread_time_ns() - before
    return spent / 1e3


def received_frames() -> list[bytes]:
    """What rank 0 receives in one Allgather of zeros, as frames."""
    comm = communicator(parse_topology("fattree,k=4"), mtu=MTU, rate_bps=RATE_BPS)
    ring, lengths = incoming(comm, build_templates(), [np.zeros(BLOCK_BYTES, np.uint8)] * RANKS)
    return [row[:length].tobytes() for row, length in zip(ring, lengths.tolist(), strict=True)]


def dissect_us() -> float:
    """CPU microseconds per packet of Scapy's dissection of such frames, its ICRC check not included."""
    frames = received_frames()[:DISSECTED]
    return cpu_us(lambda: [Ether(frame) for frame in frames]) / DISSECTED


def cpu_us(work: Callable[[], object]) -> float:
    """CPU time of this process for ``work``, in microseconds."""
    gc.collect()
    gc.disable()
    before = time.process_time_ns()
    work()
    spent = time.process_time_ns() - before
    gc.enable()
    return spent / 1e3


def bench_receive_path(passes: int) -> None:
    """The table of the receive path."""
    dissection = dissect_us()
    table = Table(title=f"CPU per received {MTU}-byte packet, ICRC included, median of {passes} passes")
    for column in ("receive path", "us/packet", "packets/s of one core", "Scapy / this"):
        table.add_column(column, justify="left" if column == "receive path" else "right")
    cost = {}
    for batch in BATCHES:
        cost[batch] = receive_us(batch, passes)
        table.add_row(
            f"batch of {batch}", f"{cost[batch]:.2f}", f"{1e6 / cost[batch]:,.0f}", f"{dissection / cost[batch]:.0f}"
        )
    table.add_row("Scapy, dissection only", f"{dissection:.2f}", f"{1e6 / dissection:,.0f}", "1")
    Console().print(table)
    print(judged(f"at most {TARGET_US:g} us at a batch of 16", f"{cost[16]:.2f}", met=cost[16] <= TARGET_US))
