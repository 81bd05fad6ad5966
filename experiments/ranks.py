"""The endpoints of a run, one process per host, and the buffers by which their results are judged from outside.

An endpoint that ends is missed by its peers, who give up after their patience; that it has ended is known here at once,
so that whoever has not noticed by then is told. The next operation is one of those that are left, in a communicator
that has been shrunk to them (``Communicator.shrink``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from endpoints.collectives.registry import Collective
from endpoints.core.communicator import Communicator
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.commands import (
    PHASES,
    Abort,
    Call,
    Go,
    HostSetup,
    RankResult,
    Ready,
    Regroup,
    Returned,
    RunOperation,
    Settle,
    Stop,
)
from endpoints.io.process import HostProcess, fork_hosts
from endpoints.nic.process import fork_offloaded
from endpoints.wire.templates import build_templates
from experiments.buffers import Buffers
from experiments.data import Data
from experiments.errors import Cancelled, ExperimentFailed, Refused
from experiments.muster import LOOK_S, Muster, host_ending, send
from experiments.patience import Patience
from experiments.scenario import Scenario

READY_TIMEOUT_S = 60.0
"""For all endpoints to be ready."""
STRAGGLER_S = 15.0
"""For those that are not once others are, who have as much to do on the same machine."""
LEAD_S = 0.05
"""Between the command and the common start, so that every endpoint is awake; and for each rank a little more."""
LEAD_PER_RANK_S = 0.003
AFTER_FAILURE_S = 3.0
"""Beside their patience with a silent peer, time that the others have to end, too, once one rank has failed."""
ANSWER_S = 5.0
"""For an answer to :class:`Abort`: an endpoint looks between two naps, one that is stopped does not."""

T = TypeVar("T")
Report = Callable[[str, int, int], None]
"""(phase that most ranks are in, chunks received so far, chunks altogether); may raise :class:`Cancelled`."""


class Ranks:
    """Forks at once, so make it before any thread starts. ``rundir`` is in memory, and so are the ``buffers``.

    ``comm`` is the communicator of the next operation; ``gone`` says of hosts whose endpoints have ended, how.
    ``cancelled`` is why the last operation was, None if it was not.
    """

    def __init__(self, scenario: Scenario, comm: Communicator, rundir: Path, buffers: Buffers) -> None:
        self.comm = comm
        self.gone: dict[str, str] = {}
        self.cancelled: str | None = None
        self._scenario = scenario
        self._buffers = buffers
        self._progress_file = rundir / "progress"
        workers = scenario.workers
        self._progress = np.memmap(self._progress_file, np.int64, "w+", shape=(comm.size, workers, 2))
        self._templates = build_templates()
        self._names = [peer.name for peer in comm.peers]
        forked = fork_offloaded(comm.size, workers) if scenario.offload == "nic" else fork_hosts(comm.size)
        self._hosts = dict(zip(self._names, forked, strict=True))
        self._operations = 0
        self._out_of_step = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts.values():
            send(host, Stop())
        deadline = time.monotonic() + AFTER_FAILURE_S
        for host in self._hosts.values():
            for process in host.processes:
                process.join(max(0.0, deadline - time.monotonic()))
                if process.is_alive():
                    process.kill()
                    process.join()

    @property
    def engines(self) -> dict[int, list[int]]:
        """The processes on which the protocol runs, by rank of the first communicator."""
        return {host.rank: _pids(host.engines) for host in self._hosts.values()}

    @property
    def processes(self) -> dict[int, list[int]]:
        """All processes of each rank of the first communicator, the one that is waited for first."""
        return {host.rank: _pids(host.processes) for host in self._hosts.values()}

    @property
    def controls(self) -> dict[int, tuple[Connection, ...]]:
        """The pipes to each endpoint over which live faults are asked for, by rank of the first communicator."""
        return {host.rank: host.controls for host in self._hosts.values()}

    @property
    def names(self) -> list[str]:
        """The host of each rank of ``comm``."""
        return [peer.name for peer in self.comm.peers]

    def enter(self, namespaces: list[str], interfaces: list[str], impairments: tuple[ImpairmentSpec, ...]) -> None:
        """Every endpoint enters its host, opens its ring and joins the trees; returns when all are ready."""
        for host in self._hosts.values():
            send(
                host,
                HostSetup(
                    namespace=namespaces[host.rank],
                    interface=interfaces[host.rank],
                    comm=self.comm,
                    rank=host.rank,
                    config=self._scenario.protocol,
                    templates=dict(self._templates),
                    seed=self._scenario.seed,
                    rq_depth=self._scenario.rq_depth,
                    impairments=impairments,
                    progress=self._progress_file,
                    nic_memory=self._scenario.nic_memory_bytes,
                ),
            )
        self._all_ready()
        for name, how in self.gone.items():
            raise ExperimentFailed(f"{name}: {how}")

    def assemble(self) -> Communicator:
        """The communicator of all whose endpoints are there: a new one after a failure, or where one has ended.

        :class:`Refused` where nobody is left.
        """
        self._look_for_the_dead(self.names)
        while self._out_of_step or self.gone.keys() & set(self.names):
            lost = [peer.rank for peer in self.comm.peers if peer.name in self.gone]
            if len(lost) == self.comm.size:
                raise Refused(f"no endpoint is left: {self.names[0]}: {self.gone[self.names[0]]}")
            self.comm = self.comm.shrink(lost)
            for rank, name in enumerate(self.names):
                send(self._hosts[name], Regroup(self.comm, rank, self._operations + 1))
            self._out_of_step = False
            self._all_ready()
        return self.comm

    def _look_for_the_dead(self, names: Iterable[str]) -> None:
        for name in names:
            host = self._hosts[name]
            if not all(process.is_alive() for process in host.processes):
                self.gone.setdefault(name, host_ending(host))

    def run(self, algorithm: Collective, data: Data, report: Report, begins: Callable[[int], None]) -> list[RankResult]:
        """One operation of ``comm``, as :meth:`assemble` gave it; the buffers then hold what was received.

        The results are in rank order; that of a rank whose endpoint has ended says how. ``begins`` is told the time of
        the common start (monotonic ns), shortly before it.
        """
        self._operations += 1
        self._out_of_step, self.cancelled = True, None
        names, size = self.names, self.comm.size
        self._buffers.prepare(algorithm, data, size)
        for rank, name in enumerate(names):
            files = self._buffers.data(rank), self._buffers.received(rank)
            send(self._hosts[name], RunOperation(algorithm.name, *files))
        ready = self._all_ready()
        start = time.monotonic_ns() + int((LEAD_S + LEAD_PER_RANK_S * size) * 1e9)
        begins(start)
        if ready:
            for name in names:
                send(self._hosts[name], Go(start))
        senders = algorithm.roots(size)
        chunks = -(-data.size // self.comm.mtu) * (senders * size - senders)
        begun = self._progress[:, :, 1].copy()
        found = self._collect(lambda: self._tell(report, begun, chunks), start / 1e9 + LOOK_S / 2)
        self._out_of_step = any(result.failure is not None for result in found)
        return found

    def _tell(self, report: Report, begun: np.ndarray, chunks: int) -> None:
        present = [self._hosts[name].rank for name in self.names]
        phase = PHASES[int(np.bincount(self._progress[present, :, 0].ravel()).argmax())]
        report(phase.value, int((self._progress[present, :, 1] - begun[present]).sum()), chunks)

    def call(self, calls: Mapping[str, Call], look: Callable[[], None]) -> dict[str, Any]:
        """Have applications of hosts with NICs call a function each; what it returns, by host.

        ``look`` is called meanwhile. :class:`ExperimentFailed` where one ends instead.
        """
        for name, command in calls.items():
            send(self._hosts[name], command)
        muster = Muster({name: self._hosts[name] for name in calls}, Returned)
        while muster.waiting:
            muster.wait(None, look)
        for name, how in muster.gone.items():
            raise ExperimentFailed(f"{name}: {how}")
        return {name: muster.answers[name].value for name in calls}

    def _present(self) -> dict[str, HostProcess]:
        return {name: self._hosts[name] for name in self.names if name not in self.gone}

    def settled(self, found: list[RankResult]) -> list[RankResult]:
        """The results of :meth:`run` with the packets that came after the end, once nothing moves any more.

        They stay as they are where somebody failed: nobody knows what is still to come then.
        """
        if self._out_of_step:
            return found
        for name in self.names:
            send(self._hosts[name], Settle())
        answers = self._answers(RankResult)
        return [answers.get(name, result) for name, result in zip(self.names, found, strict=True)]

    def _all_ready(self) -> bool:
        """Wait until the ranks are ready; whether all are. Who is not is gone."""
        asked = self._present()
        return self._answers(Ready).keys() == asked.keys()

    def _answers(self, kind: type[T]) -> dict[str, T]:
        """The answer of every rank, by name. Who gives none is gone."""
        muster = Muster(self._present(), kind)
        until = time.monotonic() + READY_TIMEOUT_S
        while muster.wait(until):
            until = min(until, time.monotonic() + STRAGGLER_S)
        muster.fence()
        self.gone |= muster.gone
        return muster.answers

    def _collect(self, look: Callable[[], None], look_at: float) -> list[RankResult]:
        """The result of every rank. Once one has failed, or is gone, the others have a time to end; then they must.

        Nobody takes longer than endpoints may wait: one that is stopped when all others are done is not waited for.
        """
        muster = Muster(self._present(), RankResult, look_at)
        patience = Patience.of(self._scenario)
        abort = self._first_missing()
        until = time.monotonic() + (AFTER_FAILURE_S + patience.operation / 1e9 if abort is None else 0)
        while muster.waiting:
            try:
                for name in muster.wait(until, look):
                    if name in muster.gone or muster.answers[name].failure is not None:
                        until = min(until, time.monotonic() + AFTER_FAILURE_S + patience.peer / 1e9)
            except Cancelled as stop:
                self.cancelled = str(stop)
                abort, until = Abort(self.cancelled), time.monotonic()
            except Exception:  # whoever goes on after that finds all in step again
                self._end(muster, Abort("the operation was given up"))
                raise
            if time.monotonic() >= until:
                self.gone |= muster.gone
                self._end(muster, abort or self._first_missing() or Abort("others have given up"))
        self.gone |= muster.gone | {name: said.gone for name, said in muster.answers.items() if said.gone}
        return [
            muster.answers[name] if name in muster.answers else _missing(rank, self.gone[name])
            for rank, name in enumerate(self.names)
        ]

    def _end(self, muster: Muster[RankResult], abort: Abort) -> None:
        """Have everybody answer now who has not."""
        for name in muster.waiting:
            send(self._hosts[name], abort)
        until = time.monotonic() + ANSWER_S
        while muster.wait(until):
            continue
        muster.fence()
        self.gone |= muster.gone

    def _first_missing(self) -> Abort | None:
        """What to tell the others of somebody who is gone."""
        for rank, name in enumerate(self.names):
            if name in self.gone:
                return Abort(self.gone[name], rank)
        return None


def _pids(processes: Iterable[ForkProcess]) -> list[int]:
    return [process.pid for process in processes if process.pid is not None]


def _missing(rank: int, how: str) -> RankResult:
    """What is there to say of a rank that cannot say it itself."""
    return RankResult(rank, [], (how, rank), {}, ring_dropped=0, cpu_seconds=0.0, gone=how)
