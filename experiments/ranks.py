"""The endpoints of a run, one process per host, and the buffers by which their results are judged from outside."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Self, TypeVar

import numpy as np

from endpoints.collectives.registry import Collective
from endpoints.core.communicator import Communicator
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.process import (
    PHASES,
    Crashed,
    Go,
    HostProcess,
    HostSetup,
    RankResult,
    Ready,
    RunOperation,
    Stop,
    fork_hosts,
)
from endpoints.wire.templates import build_templates
from experiments.buffers import Buffers
from experiments.data import Data
from experiments.errors import ExperimentFailed
from experiments.scenario import Scenario

READY_TIMEOUT_S = 60.0
LEAD_S = 0.05
"""Between the command and the common start, so that every endpoint is awake; and for each rank a little more."""
LEAD_PER_RANK_S = 0.003
AFTER_FAILURE_S = 3.0
"""Time that the others have to end, too, once one rank has failed; and again to answer that they were told to."""
LOOK_S = 0.1

_T = TypeVar("_T")

Report = Callable[[str, int, int], None]
"""(phase that most ranks are in, chunks received so far, chunks altogether)"""


class Ranks:
    """Forks at once, so make it before any thread starts. ``rundir`` is in memory, and so are the ``buffers``."""

    def __init__(self, scenario: Scenario, comm: Communicator, rundir: Path, buffers: Buffers) -> None:
        self._scenario = scenario
        self._comm = comm
        self._buffers = buffers
        self._progress_file = rundir / "progress"
        self._progress = np.memmap(self._progress_file, np.int64, "w+", shape=(comm.size, 2))
        self._templates = build_templates()
        self._hosts: list[HostProcess] = fork_hosts(comm.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            with suppress(OSError):
                host.send(Stop())
        deadline = time.monotonic() + AFTER_FAILURE_S
        for host in self._hosts:
            host.process.join(max(0.0, deadline - time.monotonic()))
            if host.process.is_alive():
                host.process.kill()
                host.process.join()

    @property
    def pids(self) -> dict[int, int]:
        """Process id of each rank's endpoint."""
        return {host.rank: host.process.pid for host in self._hosts if host.process.pid is not None}

    @property
    def controls(self) -> dict[int, Connection]:
        """The pipe to each rank's endpoint over which live faults are asked for."""
        return {host.rank: host.control for host in self._hosts}

    def enter(self, namespaces: list[str], interfaces: list[str], impairments: tuple[ImpairmentSpec, ...]) -> None:
        """Every endpoint enters its host, opens its ring and joins the trees; returns when all are ready."""
        for host in self._hosts:
            self._send(
                host,
                HostSetup(
                    namespace=namespaces[host.rank],
                    interface=interfaces[host.rank],
                    comm=self._comm,
                    rank=host.rank,
                    config=self._scenario.protocol,
                    templates=dict(self._templates),
                    seed=self._scenario.seed,
                    rq_depth=self._scenario.rq_depth,
                    impairments=impairments,
                    progress=self._progress_file,
                ),
            )
        self._all_ready()

    @staticmethod
    def _send(host: HostProcess, command: HostSetup | RunOperation | Go | Stop) -> None:
        """Give a command. That the endpoint has died is told by whoever reads its answer."""
        with suppress(BrokenPipeError):
            host.send(command)

    def _all_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        for host in self._hosts:
            if not host.pipe.poll(max(0.0, deadline - time.monotonic())):
                raise ExperimentFailed(f"the endpoint of rank {host.rank} was not ready in {READY_TIMEOUT_S:g} s")
            self._expect(host, Ready)

    def run(self, algorithm: Collective, data: Data, report: Report, begins: Callable[[int], None]) -> list[RankResult]:
        """One operation on all ranks, in rank order; the buffers then hold what was received.

        ``begins`` is told the time of the common start (monotonic ns), shortly before it.
        """
        self._buffers.prepare(algorithm, data)
        for host in self._hosts:
            files = self._buffers.data(host.rank), self._buffers.received(host.rank)
            self._send(host, RunOperation(algorithm.name, *files))
        self._all_ready()
        begun = self._progress[:, 1].copy()
        start = time.monotonic_ns() + int((LEAD_S + LEAD_PER_RANK_S * self._comm.size) * 1e9)
        begins(start)
        for host in self._hosts:
            self._send(host, Go(start))
        senders = algorithm.roots(self._comm.size)
        chunks = -(-data.size // self._comm.mtu) * (senders * self._comm.size - senders)
        return self._collect(lambda: self._tell(report, begun, chunks))

    def _tell(self, report: Report, begun: np.ndarray, chunks: int) -> None:
        phase = PHASES[int(np.bincount(self._progress[:, 0]).argmax())]
        report(phase.value, int((self._progress[:, 1] - begun).sum()), chunks)

    def _collect(self, look: Callable[[], None]) -> list[RankResult]:
        """Every rank's result. Once one has failed the others end soon, or are told to; who does not then is named."""
        results: dict[int, RankResult] = {}
        deadline: float | None = None
        told = False
        waiting = {host.pipe: host for host in self._hosts}
        while waiting:
            for ready in wait(list(waiting), LOOK_S):
                host = waiting.pop(ready)  # type: ignore[call-overload]
                results[host.rank] = self._expect(host, RankResult)
                if results[host.rank].failure is not None and deadline is None:
                    deadline = time.monotonic() + AFTER_FAILURE_S + self._scenario.peer_timeout_ns / 1e9
            look()
            if not waiting or deadline is None or time.monotonic() <= deadline:
                continue
            if told:
                raise ExperimentFailed(f"{self._named(waiting.values())}: no answer, the endpoint seems to be stopped")
            for host in waiting.values():
                self._send(host, Stop())  # it answers with what it has, then ends
            deadline, told = time.monotonic() + AFTER_FAILURE_S, True
        return [results[rank] for rank in sorted(results)]

    def _named(self, hosts: Iterable[HostProcess]) -> str:
        return ", ".join(f"{self._comm.peers[host.rank].name} (rank {host.rank})" for host in hosts)

    def _expect(self, host: HostProcess, kind: type[_T]) -> _T:
        """The next answer of a host; :class:`ExperimentFailed` with its last words if it crashed or was killed."""
        name = self._named([host])
        try:
            answer = host.pipe.recv()
        except (EOFError, OSError):
            host.process.join(1.0)
            raise ExperimentFailed(
                f"the endpoint of {name} ended unasked with status {host.process.exitcode}"
            ) from None
        if isinstance(answer, Crashed):
            sys.stderr.write(answer.trace)
            raise ExperimentFailed(f"the endpoint of {name} crashed: {answer.trace.splitlines()[-1]}")
        if not isinstance(answer, kind):
            raise ExperimentFailed(f"the endpoint of {name} answered {answer!r}")
        return answer
