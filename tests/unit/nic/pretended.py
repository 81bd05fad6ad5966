"""Hosts with NICs whose engines pretend: real processes, queues and shared memory, but no network, and no root."""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from endpoints.collectives.registry import Collective
from endpoints.core.config import ProtocolConfig
from endpoints.core.packets import U8
from endpoints.io.clock import now_ns
from endpoints.io.commands import Call, HostSetup, RankResult, Ready, Regroup, Returned, Stop
from endpoints.io.process import HostProcess
from endpoints.nic import application, process
from endpoints.nic.device import Engine
from experiments.communicators import communicator
from topo.registry import parse_topology

COMM = communicator(parse_topology("single,hosts=2"), mtu=256, rate_bps=50_000_000, trees=8)
BOUND_S = 30.0
"""Far beyond what anything here takes."""

GOOD, ENDLESS, SILENT_PEER, CRASH, KILLED, AWAITS_FILE = range(6)
"""What an operation does, by the first byte that its rank contributes; a good one copies that to every block."""


class PretendedEngine:
    """Every operation ends at once, or as its first byte says. ``setup.progress`` is the file that one waits for."""

    def __init__(self, setup: HostSetup, interrupt: int) -> None:
        self.rank, self.comm = setup.rank, setup.comm
        self.ended: deque[int] = deque()
        self._file = setup.progress
        self._interrupt = select.poll()
        self._interrupt.register(interrupt, select.POLLIN)
        self._prepared: dict[int, tuple[U8, U8]] = {}
        self._under_way: dict[int, Callable[[], bool]] = {}
        self._results: dict[int, RankResult] = {}

    def run_until(self, finished: Callable[[], bool], at_most: int | None = None) -> None:
        while not finished():
            for op, condition in list(self._under_way.items()):
                if condition():
                    self._succeed(op)
            if self._interrupt.poll(5) or (at_most is not None and now_ns() >= at_most):
                return

    def prepare(self, op: int, _algorithm: Collective, data: U8, buffer: U8) -> None:
        self._prepared[op] = data, buffer

    def begin(self, op: int) -> None:
        data, _ = self._prepared[op]
        match int(data.flat[0]) if data.size else GOOD:
            case 1:
                self._under_way[op] = lambda: False
            case 2:
                self._end(op, ("rank 1 does not answer", 1))
            case 3:
                raise RuntimeError("the engine stalls")
            case 4:
                os.kill(os.getpid(), signal.SIGKILL)
            case 5:
                self._under_way[op] = self._file.exists
            case _:
                self._succeed(op)

    def give_up(self, op: int, reason: str, suspect: int | None) -> None:
        self._end(op, (reason, suspect))

    def result(self, op: int) -> RankResult:
        return self._results[op]

    def regroup(self, command: Regroup) -> None:
        self.rank, self.comm = command.rank, command.comm

    def _succeed(self, op: int) -> None:
        data, buffer = self._prepared[op]
        into = buffer if buffer.ndim > 1 else buffer.reshape(-1, max(1, data.size))
        into[...] = data
        self._end(op, None)

    def _end(self, op: int, failure: tuple[str, int | None] | None) -> None:
        self._under_way.pop(op, None)
        phases = [("barrier", op), ("done" if failure is None else "failed", op + 1)]
        self._results[op] = RankResult(self.rank, phases, failure, {"chunks_sent": 1}, 0, 0.25)
        self.ended.append(op)


@contextmanager
def pretend(setup: HostSetup, interrupt: int, _control: Connection) -> Iterator[Engine]:
    yield PretendedEngine(setup, interrupt)


class PretendedHost:
    """A host of rank 0 whose application and NIC are there; ``file`` is what ``AWAITS_FILE`` waits for."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.file = folder / "go"
        [self.process] = process.fork_offloaded(1, workers, pretend)
        self.tell(HostSetup("", "", COMM, 0, ProtocolConfig(), {}, 0, 64, (), self.file))
        assert self.answer() == Ready()

    def tell(self, command: Any) -> None:
        self.process.send(command)

    def answer(self) -> Any:
        """What the application says."""
        assert self.process.pipe.poll(BOUND_S), "no answer"
        return self.process.pipe.recv()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What ``function(nic, *arguments)`` returns in the application."""
        self.tell(Call(function, arguments))
        answer = self.answer()
        assert isinstance(answer, Returned), answer
        return answer.value

    def end(self) -> None:
        """Whatever state it is in."""
        with suppress(OSError):
            self.tell(Stop())
        self.process.process.join(0.2)
        for each in self.process.processes:
            each.kill()
            each.join()


def ended(host: HostProcess, *, within_s: float = BOUND_S) -> list[int | None]:
    """The exit codes of all of a host's processes, which end by themselves."""
    deadline = time.monotonic() + within_s
    for each in host.processes:
        each.join(max(0.0, deadline - time.monotonic()))
    return [each.exitcode for each in host.processes]


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PretendedHost]]:
    """Makes pretended hosts by their number of workers."""
    monkeypatch.setattr(application, "enter_namespace", lambda _path: None)
    made: list[PretendedHost] = []

    def make(workers: int = 1) -> PretendedHost:
        made.append(PretendedHost(tmp_path, workers))
        return made[-1]

    yield make
    for host in made:
        host.end()
