"""A NIC as an application sees it: memory is registered, collectives are posted, and completions are waited for.

The names are those of the verbs of RDMA, where there are such. Nothing is copied: the NIC maps the memory itself. Work
must be posted in the same order on every rank, as with MPI and NCCL; several may be outstanding. After a work request
that failed, all that has not begun is flushed, as by a queue pair in its error state, until :meth:`Nic.regroup`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from endpoints.collectives.elements import Element
from endpoints.collectives.registry import collective, collectives
from endpoints.io.commands import HostSetup, RankResult, Ready, Regroup, Stop
from endpoints.nic.channel import Channel
from endpoints.nic.entries import DEPTH, ELEMENTS, Completion, Status, Work
from endpoints.nic.memory import Array, SharedMemory
from endpoints.nic.port import NicGone, Port
from endpoints.nic.queue import QueueFull
from endpoints.nic.requests import AskResult, Deregister, GiveUp, Register
from endpoints.nic.results import side_by_side
from endpoints.nic.rows import Rows
from endpoints.nic.stripes import stripes


class CollectiveFailed(Exception):
    """A work request ended with an error; ``completion`` says which."""

    def __init__(self, completion: Completion) -> None:
        super().__init__(f"{completion.status.name}: {completion.reason}")
        self.completion = completion


@dataclass(frozen=True, slots=True)
class Region:
    """``size`` bytes of registered memory from ``offset`` on. ``region[a:b]`` is a part of it."""

    key: int
    offset: int
    size: int

    def __getitem__(self, part: slice) -> Region:
        start, stop, step = part.indices(self.size)
        if step != 1:
            raise ValueError("a region is contiguous")
        return Region(self.key, self.offset + start, max(0, stop - start))


NOTHING = Region(0, 0, 0)
"""What a rank contributes that has nothing to give."""


class Handle:
    """A work request that was posted; ``completion`` is how it ended, None before."""

    def __init__(self, nic: Nic, number: int, workers: Sequence[int]) -> None:
        self._nic = nic
        self._workers = set(workers)
        """Of whom there is no word yet."""
        self._worst: Completion | None = None
        self.number = number
        self.completion: Completion | None = None

    def poll(self) -> bool:
        """Whether it has ended, in whatever way; does not wait."""
        self._nic.progress()
        return self.completion is not None

    def wait(self, timeout: float | None = None) -> None:
        """Sleep until it has ended.

        :class:`CollectiveFailed` if it did with an error, TimeoutError if it has not in ``timeout`` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self.poll():
            rest = None if until is None else max(0.0, until - time.monotonic())
            if not wait(self._nic.events, rest):
                raise TimeoutError(f"work request {self.number} has not ended in {timeout:g} s")
        assert self.completion is not None
        if self.completion.status is not Status.SUCCESS:
            raise CollectiveFailed(self.completion)

    def note(self, worker: int, completion: Completion) -> bool:
        """A worker's part has ended; whether it is the first that ended badly. For :class:`Nic`."""
        self._workers.discard(worker)
        bad = completion.status is not Status.SUCCESS
        first = bad and self._worst is None
        if first:
            self._worst = completion
        if not self._workers or completion.status is Status.FATAL_ERROR:
            self.completion = self._worst or completion
        return first

    @property
    def waiting(self) -> frozenset[int]:
        """Workers of whom there is no word yet."""
        return frozenset(self._workers)


class Nic:
    """The application's end of a NIC, which has a worker for each of ``channels``.

    ``rank`` is this application's, ``size`` how many there are. ``gone`` says how the NIC has ended, None while it is
    there; one worker's end is that of all.
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._ports = [Port(channel) for channel in channels]
        self._numbers = {name: number for number, name in enumerate(collectives())}
        self._outstanding: dict[int, Handle] = {}
        self._shared = SharedMemory()
        self._posted = 0
        self._keys = 0
        self.gone: str | None = None
        self.rank, self.size, self._mtu = 0, 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def events(self) -> list[Any]:
        """What becomes readable when there is something to do for :meth:`progress`."""
        return [event for port in self._ports for event in port.events]

    @property
    def trace(self) -> str | None:
        """Of a worker that has crashed."""
        return next((port.trace for port in self._ports if port.trace is not None), None)

    # -- the connection ---------------------------------------------------------------------------------------------

    def open(self, setup: HostSetup) -> None:
        """Have the NIC enter a network and be a rank of a communicator."""
        self._share_out(setup)

    def regroup(self, command: Regroup) -> None:
        """Be a rank of another communicator; what is outstanding is flushed, and work is accepted again."""
        self._share_out(command)
        self.progress()

    def _share_out(self, command: HostSetup | Regroup) -> None:
        """Every worker has its share of the communicator."""
        self.rank, self.size, self._mtu = command.rank, command.comm.size, command.comm.mtu
        for worker, port in enumerate(self._ports):
            self._tell(port, replace(command, comm=command.comm.share(worker, len(self._ports))))
        self._answers(Ready)

    def allocate(self, size: int) -> npt.NDArray[np.uint8]:
        """Memory of so many bytes that can be registered; it belongs to the array."""
        return self._shared.allocate(size)

    def register(self, array: Array) -> Region:
        """Have the NIC map an array, which lies in what :meth:`allocate` gave or is a ``numpy.memmap`` of a file.

        ValueError if it is neither, or not contiguous; OSError if the NIC cannot.
        """
        if not array.nbytes:
            return NOTHING
        with self._shared.backing(array) as (descriptor, offset):
            self._keys += 1
            for port in self._ports:
                self._tell(port, Register(self._keys, offset + array.nbytes), descriptor)
            self._answers(Ready)
        return Region(self._keys, offset, array.nbytes)

    def deregister(self, region: Region) -> None:
        """Have the NIC let go of all the memory that the region is of."""
        if region.key:
            for port in self._ports:
                self._tell(port, Deregister(region.key))

    def give_up(self, reason: str, suspect: int | None = None, handle: Handle | None = None) -> None:
        """End a work request where it is, or all; what has not begun is flushed."""
        number = None if handle is None else handle.number
        for port in self._ports:
            self._tell(port, GiveUp(number, reason, suspect))

    def result(self, handle: Handle) -> RankResult:
        """What the workers say of a work request, one of the last to have ended: phases, counters, CPU time.

        LookupError where there is nothing to say, since it was never begun.
        """
        for port in self._ports:
            self._tell(port, AskResult(handle.number))
        said = [answer for answer in self._answers(RankResult, type(None)) if answer is not None]
        if not said:
            raise LookupError(f"work request {handle.number} was not begun")
        return side_by_side(said)

    def close(self) -> None:
        """End the NIC. Work that is under way is finished first, but nobody waits for it here."""
        for port in self._ports:
            port.leave("it was closed", Stop())
        self._fail("it was closed")

    def _tell(self, port: Port, message: object, descriptor: int | None = None) -> None:
        try:
            port.tell(message, descriptor)
        except NicGone as end:
            self._fail(str(end))
            raise

    def _answers(self, *kinds: type) -> list[Any]:
        try:
            return [port.answer(*kinds) for port in self._ports]
        except NicGone as end:
            self._fail(str(end))
            raise

    # -- the queues -------------------------------------------------------------------------------------------------

    def allgather_async(self, data: Region, buffer: Region, algorithm: str = "mcast_allgather") -> Handle:
        """Every rank's ``data`` to all, in rank order; :class:`QueueFull` if too much is outstanding.

        Neither region may be changed until it has ended.
        """
        return self.post(algorithm, data, buffer)

    def broadcast_async(self, data: Region, buffer: Region, algorithm: str = "mcast_broadcast") -> Handle:
        """The same, of rank 0's ``data``; that of others is not looked at."""
        return self.post(algorithm, data if self.rank == 0 else NOTHING, buffer)

    def reduce_scatter_async(
        self, data: Region, buffer: Region, element: Element, algorithm: str = "ring_reduce_scatter"
    ) -> Handle:
        """The sum over all ranks of the block for this one; ``data`` has a block for each, in rank order."""
        return self.post(algorithm, data, buffer, element=element)

    def post(
        self,
        algorithm: str,
        data: Region,
        buffer: Region,
        start_at: int = 0,
        element: Element = Element.UINT32,
    ) -> Handle:
        """Any algorithm by its name, not before ``start_at`` (monotonic ns); ValueError if it or a length is wrong."""
        made = collective(algorithm)
        into = Rows.blocks(buffer.key, buffer.offset, buffer.size, made.does.buffer_blocks(self.size))
        given = Rows.blocks(data.key, data.offset, data.size, made.does.data_blocks(self.size))
        if made.contributes(self.rank) and given.length != into.length:
            raise ValueError(f"{algorithm}: blocks of {given.length} bytes are given, and of {into.length} received")
        if into.length % made.granularity:
            raise ValueError(f"{algorithm}: a block of {into.length} bytes is no multiple of {made.granularity}")
        self.progress()
        if len(self._outstanding) >= DEPTH:
            raise QueueFull(f"{DEPTH} work requests are outstanding, which is all there is room for")
        self._posted += 1
        parts = self._parts(into)
        handle = Handle(self, self._posted, [worker for worker, _ in parts])
        self._outstanding[handle.number] = handle
        for worker, (start, stop) in parts:
            work = Work(
                handle.number,
                self._numbers[algorithm],
                given.part(start, stop) if made.contributes(self.rank) else given,
                into.part(start, stop),
                start_at,
                ELEMENTS.index(element),
            )
            self._ports[worker].post(work)
        if self.gone is not None:
            self._fail(self.gone)
        return handle

    def _parts(self, rows: Rows) -> list[tuple[int, tuple[int, int]]]:
        """Who carries which bytes of each block; the first worker has a part even of nothing, as ranks meet in it."""
        shares = enumerate(stripes(rows.length, self._mtu, len(self._ports)))
        return [(worker, share) for worker, share in shares if share[1] > share[0] or worker == 0]

    def progress(self) -> None:
        """Take note of completions, and of the NIC's end; does not wait."""
        for worker, port in enumerate(self._ports):
            for completion in port.completions():
                self._note(worker, completion)
        for port in self._ports:
            if port.gone is not None:
                self._fail(port.gone)

    def _note(self, worker: int, completion: Completion) -> None:
        handle = self._outstanding.get(completion.number)
        if handle is None:
            return
        if handle.note(worker, completion) and handle.completion is None:
            reason, suspect = f"another worker's part failed: {completion.reason}", completion.suspect
            for other in handle.waiting:
                with suppress(NicGone):  # which is noticed where all ports are looked at
                    self._ports[other].tell(GiveUp(handle.number, reason, suspect))
        if handle.completion is not None:
            del self._outstanding[handle.number]

    def _fail(self, how: str) -> None:
        """The NIC is gone, as a whole: what is outstanding has failed, and workers that are left give up and end."""
        self.gone = self.gone or how
        for port in self._ports:
            port.leave(self.gone, GiveUp(None, self.gone, self.rank))
        for number, handle in list(self._outstanding.items()):
            handle.note(-1, Completion(number, Status.FATAL_ERROR, self.gone))
        self._outstanding.clear()
