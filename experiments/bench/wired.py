"""Workers of a NIC on a cable: each a process with the loop, ring and protocol of a real one; and who feeds them.

They are one rank's, in the fast path of a Broadcast over the other rank's trees: a worker, a tree, a stream of frames,
made beforehand. What a worker says of it is its own CPU time, not that of the sender, in which the kernel moves frames
from one end of the cable into the rings at the other.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from endpoints.core.barrier import Step
from endpoints.core.communicator import FRAME_OVERHEAD_UD, Communicator
from endpoints.core.endpoint import Endpoint
from endpoints.core.messages import Kind, Message
from endpoints.core.multicast import ReliableMulticast
from endpoints.core.operation import Operation
from endpoints.core.packets import U8, UdBurst
from endpoints.io import bpf
from endpoints.io.clock import now_ns
from endpoints.io.host import enter_namespace
from endpoints.io.loop import Loop
from endpoints.io.process import UNWRITTEN
from endpoints.io.ring import Ring
from endpoints.io.roce_port import RocePort
from endpoints.station import Arrivals, Station
from endpoints.wire.codec import Codec
from endpoints.wire.templates import Templates, build_templates
from experiments.bench.batches import Batch, Received
from experiments.bench.cable import FAR, INTERFACE, NEAR, Cable
from experiments.communicators import group_address

MTU = 4096
CHUNKS = 8192
"""Of a stream, 32 MiB."""
DEPTH = 2048
"""Slots of a ring: what comes in a nap at the highest rate in use, and as much again."""
FILL = 1024
"""Packets in each ring when stopped workers go on."""
MOST_LATE = 256
"""Packets that the sender makes up for if it was kept waiting; it drops behind by what is more."""
LONGEST_NS = 20_000_000_000
FIRST = -20
"""Niceness of a worker, whose core is its own: whoever else is on the machine waits."""
SHORTEST_SLEEP_S = 0.000_2
ROOM_S = 0.000_5
"""Wait for room in the sender's queue."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What one worker gets: ``data`` in ``frames``, in the fast path of an operation of ``comm``."""

    comm: Communicator
    templates: Templates
    data: U8
    frames: list[U8]


def make_streams(workers: int, rate: int) -> list[Stream]:
    """One for each of so many workers, each at ``rate`` packets a second, which is what its link carries."""
    templates = build_templates()
    link_bps = workers * rate * (MTU + FRAME_OVERHEAD_UD) * 8
    whole = Communicator((NEAR, FAR), tuple(group_address(tree) for tree in range(workers)), MTU, link_bps)
    streams = []
    for worker in range(workers):
        comm = whole.share(worker, workers)
        data = np.random.default_rng(worker).integers(0, 256, CHUNKS * MTU, dtype=np.uint8)
        psn = np.arange(CHUNKS, dtype=np.uint32)
        burst = UdBurst(0, psn, psn | np.uint32(1 << comm.chunk_bits), list(data.reshape(-1, MTU)))
        streams.append(Stream(comm, templates, data, Codec(comm, FAR.rank, templates).encode_burst(burst)))
    return streams


class WatchedRing:
    """A ring that notes every batch that is given back."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._woke = False
        self.batches: list[Batch] = []
        self.take = ring.take
        self.send = ring.send
        self.fileno = ring.fileno

    def wake(self) -> None:
        """The next batch is the first one behind a sleep."""
        self._woke = True

    def release(self, count: int) -> None:
        """Give slots back."""
        self._ring.release(count)
        self.batches.append(Batch(count, self._woke, now_ns(), time.process_time_ns()))
        self._woke = False

    @property
    def at_border(self) -> bool:
        """Whether there may be more."""
        return self._ring.at_border


class WatchedLoop(Loop):
    """A loop that tells its ring when it begins a turn."""

    def __init__(self, station: Station, ring: WatchedRing, interrupt: int, nap_ns: int) -> None:
        super().__init__(station, ring, interrupt, lambda _event: None, nap_ns)
        self._watched = ring

    def turn(self) -> Arrivals:
        """One turn."""
        self._watched.wake()
        return super().turn()


def _work(cable: Cable, stream: Stream, nap_ns: int, core: int, pipe: Connection) -> None:
    """A worker: for each number of chunks that it is told, receive until so many are missing, and say what it took."""
    os.sched_setaffinity(0, {core})
    os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    enter_namespace(cable.near)
    comm = stream.comm
    buffer = np.full(len(stream.data), UNWRITTEN, np.uint8)  # and so in memory
    with (
        Ring(INTERFACE, MTU, DEPTH, program=bpf.addressed_to(comm)) as ring,
        RocePort(INTERFACE, shared=comm.workers > 1) as port,
    ):
        port.join([group.ip for group in comm.groups])
        endpoint = Endpoint(comm, NEAR.rank)
        operation = _in_fast_path(endpoint, buffer)
        station = Station(endpoint, Codec(comm, NEAR.rank, stream.templates))
        watched = WatchedRing(ring)
        never, kept = os.pipe()
        loop = WatchedLoop(station, watched, never, nap_ns)
        loop.turn()  # sends what is left of the barrier
        gc.disable()
        pipe.send(None)
        while operation.missing_chunks:
            pipe.send(_receive(loop, watched, operation, pipe.recv()))
        os.close(kept)
    if not np.array_equal(buffer, stream.data):
        raise RuntimeError("a worker received wrong bytes")
    pipe.send(None)


def _in_fast_path(endpoint: Endpoint, buffer: U8) -> Operation:
    """A Broadcast from the far end, its barrier passed."""
    operation = endpoint.start(
        lambda services, op: ReliableMulticast(services, op, (FAR.rank,), None, buffer), now_ns()
    )
    operation.on_message(FAR.rank, Message(Kind.BARRIER, operation.op, (Step.ARRIVED,)), now_ns())
    return operation


def _receive(loop: Loop, ring: WatchedRing, operation: Operation, left: int) -> Received:
    ring.batches.clear()
    before = time.process_time_ns()
    loop.run_until(lambda: operation.missing_chunks <= left, now_ns() + LONGEST_NS)
    spent = time.process_time_ns() - before
    if operation.missing_chunks > left:
        raise RuntimeError(f"{operation.missing_chunks - left} packets were lost")
    return Received(tuple(ring.batches), spent)


def _send(cable: Cable, streams: Sequence[Stream], pipe: Connection) -> None:
    """The sender: told of a range of frames and their rate, send these of every stream, then say so."""
    enter_namespace(cable.far)
    with Ring(INTERFACE, MTU, 16) as ring:
        while True:
            first, stop, rate = pipe.recv()
            start, sent = time.perf_counter(), first
            while sent < stop:
                due = min(stop, first + 1 + int((time.perf_counter() - start) * rate)) if rate else stop
                if rate and due > sent + MOST_LATE:
                    start += (due - sent - MOST_LATE) / rate
                    due = sent + MOST_LATE
                for index in range(sent, due):
                    for stream in streams:
                        while not ring.send(stream.frames[index]):
                            time.sleep(ROOM_S)
                sent = due
                if rate:
                    time.sleep(max(SHORTEST_SLEEP_S, start + (sent - first) / rate - time.perf_counter()))
            pipe.send(None)


class Bench:
    """A sender and its workers, ready; RuntimeError where one of them ends."""

    def __init__(self, sender: Connection, workers: Sequence[Connection]) -> None:
        self._sender, self._workers = sender, workers
        self._hear()

    def paced(self, rate: int) -> list[Received]:
        """All of the streams, at ``rate`` packets a second each, while the workers receive: what each of them took."""
        self._tell(0)
        self._sender.send((0, CHUNKS, rate))
        taken = self._hear()
        self._hear()  # all have compared their bytes
        return taken

    def drained(self) -> list[Received]:
        """All of the streams, put into the rings in parts while the workers are stopped: what each took.

        One for each part and worker; all workers go on at the same time.
        """
        taken = []
        for first in range(0, CHUNKS, FILL):
            stop = min(CHUNKS, first + FILL)
            self._sender.send((first, stop, 0))
            _answer(self._sender)
            self._tell(CHUNKS - stop)
            taken += self._hear()
        self._hear()
        return taken

    def _tell(self, left: int) -> None:
        for pipe in self._workers:
            pipe.send(left)

    def _hear(self) -> list[Any]:
        return [_answer(pipe) for pipe in self._workers]


def _answer(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        raise RuntimeError("a process on the cable ended without an answer") from None


@contextmanager
def bench(cable: Cable, streams: Sequence[Stream], cores: Sequence[int], nap_ns: int) -> Iterator[Bench]:
    """Workers on ``cores``, one to a stream, that sleep ``nap_ns`` after they received something (0: never)."""
    context = multiprocessing.get_context("fork")
    processes, pipes = [], []
    tasks = [partial(_work, cable, stream, nap_ns, core) for stream, core in zip(streams, cores, strict=True)]
    try:
        for task in [*tasks, partial(_send, cable, streams)]:
            ours, theirs = context.Pipe()
            process = context.Process(target=task, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(ours)
        yield Bench(pipes[-1], pipes[:-1])
    finally:
        for process in processes:
            process.kill()
            process.join()
