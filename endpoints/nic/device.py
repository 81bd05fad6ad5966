"""A worker of a NIC: takes work from its queue, runs the engine, and says when it is done.

It lives as long as its application and no longer, but finishes what is under way: others wait for it, and the memory
that it needs is mapped here. How long that takes is bounded by the patience of the collectives.

After work that failed, or was refused, what has not begun is flushed, as by a queue pair in its error state, until the
ranks are grouped anew: they would not be at the same work any more.
"""

from __future__ import annotations

import mmap
import os
import select
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import reduction
from typing import Protocol

import numpy as np

from endpoints.collectives.registry import Collective, collectives
from endpoints.core.communicator import Communicator
from endpoints.core.errors import ProtocolError
from endpoints.core.packets import U8
from endpoints.io.clock import now_ns
from endpoints.io.commands import RankResult, Ready, Regroup, Stop
from endpoints.nic import budget
from endpoints.nic.channel import Channel, ring, silence
from endpoints.nic.entries import DEPTH, Completion, Status, Work
from endpoints.nic.jobs import Bad, Job, check
from endpoints.nic.requests import AskResult, Deregister, GiveUp, Refused, Register
from endpoints.nic.results import in_turn

OUTSTANDING = 4
"""Works that run at a time, each with an equal part of the memory; the others wait in the queue."""


OPERATIONS = 64
"""By so many the numbers of operations are ahead after each regrouping: whoever groups the ranks counts works, and not
their rounds, and what is still on its way must not be of a number that is used again."""


class Engine(Protocol):
    """What runs the protocol (``io.host.Host``). Operations are told apart by their numbers."""

    rank: int
    comm: Communicator
    ended: deque[int]
    """Operations that have ended."""

    def run_until(self, finished: Callable[[], bool], at_most: int | None = None) -> None:
        """Run until ``finished``, the interrupt, or the time ``at_most`` (monotonic ns)."""

    def prepare(self, op: int, algorithm: Collective, data: U8, buffer: U8) -> None:
        """Have an operation ready."""

    def begin(self, op: int) -> None:
        """Begin it."""

    def give_up(self, op: int, reason: str, suspect: int | None) -> None:
        """End it where it is."""

    def result(self, op: int) -> RankResult:
        """What is to say of it, now that it has ended; KeyError where that is forgotten."""

    def regroup(self, command: Regroup) -> None:
        """Begin anew in another communicator."""


@dataclass(slots=True)
class _Running:
    """A job with the numbers of its rounds' operations, of which those that have ended have ``results``."""

    job: Job
    ops: range
    results: list[RankResult] = field(default_factory=list)

    @property
    def op(self) -> int:
        """The round that runs."""
        return self.ops[len(self.results)]


class Device:
    """``interrupt`` ends ``engine.run_until``; it is this worker's own, and has its doorbell and its connection.

    ``nic`` is what the worker has of the NIC's memory.
    """

    def __init__(
        self, channel: Channel, interrupt: select.epoll, engine: Engine, first_op: int, nic: budget.Nic
    ) -> None:
        self._work, self._completions = channel.for_nic()
        self._connection = channel.nic
        self._doorbell, self._completed = channel.doorbell, channel.completed
        self._interrupt = interrupt
        self._engine = engine
        self._next_op = first_op
        self._nic = nic
        self._algorithms = tuple(collectives().values())
        self._memory: dict[int, U8] = {0: np.zeros(0, np.uint8)}
        self._running: dict[int, _Running] = {}
        """By the number of the operation that runs."""
        self._starts: dict[int, int] = {}
        """When operations that are prepared are to begin."""
        self._ended: dict[int, _Running] = {}
        """The last that have ended, by the number of the work."""
        self._flushing: tuple[str, int | None] | None = None
        """Why no work is begun, and on whose account."""
        self._ending = False

    def serve(self) -> None:
        """Until the application says so, or has ended, and nothing is under way any more."""
        while self._running or not self._ending:
            self._engine.run_until(lambda: bool(self._engine.ended), min(self._starts.values(), default=None))
            self._hear()
            self._begin()
            while self._engine.ended:
                self._round_ended(self._engine.ended.popleft())
            self._take()

    # -- the connection ---------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        for descriptor, _ in self._interrupt.poll(0):
            if descriptor == self._doorbell:
                silence(self._doorbell)
                continue
            try:
                self._obey(self._connection.recv())
            except (EOFError, OSError):  # the application has ended, or does not go on with what it began to say
                self._end("its application has ended")

    def _obey(self, message: object) -> None:
        match message:
            case Register(key=key, length=length):
                self._connection.send(self._register(key, length))
            case Deregister(key=key):
                self._memory.pop(key, None)
            case AskResult(number=number):
                self._connection.send(self._result(number))
            case GiveUp() as command:
                self._flushing = self._flushing or (command.reason, command.suspect)
                self._give_up(command)
            case Regroup() as command:
                self._flushing = "the ranks are grouped anew", None
                self._give_up(GiveUp(None, *self._flushing))
                self._take()
                command = replace(command, first_op=command.first_op + command.comm.epoch * OPERATIONS)
                self._engine.regroup(command)
                self._flushing, self._next_op = None, command.first_op
                self._connection.send(Ready())
            case Stop():
                self._end("the NIC is closed")
            case _:
                raise TypeError(f"an application asked its NIC for {message!r}")

    def _end(self, reason: str) -> None:
        if not self._ending:
            self._ending, self._flushing = True, (reason, None)
            self._interrupt.unregister(self._connection.fileno())

    def _register(self, key: int, length: int) -> Ready | Refused:
        descriptor = reduction.recv_handle(self._connection)
        try:
            # Populated, as a NIC pins what is registered: a page fault costs more than a packet.
            memory = mmap.mmap(descriptor, length, mmap.MAP_SHARED | mmap.MAP_POPULATE)
        except (OSError, ValueError) as problem:
            return Refused(f"register {length} bytes: {problem}")
        finally:
            os.close(descriptor)
        self._memory[key] = np.frombuffer(memory, np.uint8)
        return Ready()

    def _give_up(self, command: GiveUp) -> None:
        for op, running in list(self._running.items()):
            if command.number in (None, running.job.work.number):
                self._engine.give_up(op, command.reason, command.suspect)
        while self._engine.ended:
            self._round_ended(self._engine.ended.popleft())

    def _result(self, number: int) -> RankResult | None:
        """As of now, as far as the engine still knows: packets that come after the end belong to it, too."""
        if number not in self._ended:
            return None
        its = self._ended[number]
        return in_turn([self._as_of_now(op, said) for op, said in zip(its.ops, its.results, strict=False)])

    def _as_of_now(self, op: int, said: RankResult) -> RankResult:
        try:
            return self._engine.result(op)
        except KeyError:
            return said

    # -- the queues -------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Prepare what is there, or end it at once with what is wrong with it."""
        while (self._flushing is not None or len(self._running) < OUTSTANDING) and (packed := self._work.take()):
            work, engine = Work.unpack(packed), self._engine
            if self._flushing is not None:
                self._complete(Completion(work.number, Status.FLUSHED_ERROR, *self._flushing))
                continue
            try:
                job = check(work, self._algorithms, self._memory, engine.comm, engine.rank, self._nic)
                ops = range(self._next_op, self._next_op + len(job.rounds))
                self._next_op = ops.stop
                self._prepare(_Running(job, ops))
            except Bad as problem:
                self._flushing = f"work request {work.number} was refused: {problem}", None
                self._complete(Completion(work.number, problem.status, str(problem)))

    def _prepare(self, running: _Running) -> None:
        """Have the next round ready."""
        part = running.job.rounds[len(running.results)]
        try:
            self._engine.prepare(running.op, running.job.algorithm, part.data, part.buffer)
        except ProtocolError as problem:
            raise Bad(Status.LOCAL_LENGTH_ERROR, str(problem)) from None
        self._running[running.op] = running
        self._starts[running.op] = running.job.work.start_at
        self._begin()

    def _begin(self) -> None:
        """What is prepared and due."""
        for op in [op for op, at in self._starts.items() if at <= now_ns()]:
            del self._starts[op]
            self._engine.begin(op)

    def _round_ended(self, op: int) -> None:
        running = self._running.pop(op)
        self._starts.pop(op, None)
        result = self._engine.result(op)
        running.results.append(result)
        number = running.job.work.number
        if result.failure is None and len(running.results) < len(running.ops):
            self._prepare(running)
            return
        self._ended[number] = running
        if len(self._ended) > DEPTH:
            del self._ended[next(iter(self._ended))]
        if result.failure is None:
            self._complete(Completion(number, Status.SUCCESS))
            return
        reason, suspect = result.failure
        self._flushing = self._flushing or (f"work request {number} failed: {reason}", suspect)
        self._complete(Completion(number, Status.RETRY_EXCEEDED_ERROR, reason, suspect))

    def _complete(self, completion: Completion) -> None:
        self._completions.put(completion.pack())
        ring(self._completed)
