"""One endpoint of a process: its ring, its injected faults, and an account of every operation."""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection

import numpy as np

from endpoints.collectives.registry import Collective
from endpoints.core.endpoint import Endpoint
from endpoints.core.events import Completed, Event, Failed, PhaseEntered
from endpoints.core.operation import Operation
from endpoints.core.packets import U8
from endpoints.impairments.impairer import Impairer
from endpoints.io import bpf
from endpoints.io.clock import now_ns
from endpoints.io.commands import PHASES, HostSetup, RankResult, Regroup
from endpoints.io.lateness import Lateness
from endpoints.io.live_faults import Control, Way
from endpoints.io.loop import Loop, nap_for
from endpoints.io.ring import Ring
from endpoints.io.roce_port import RocePort
from endpoints.station import Station
from endpoints.wire.codec import Codec

CLONE_NEWNET = 0x40000000


def enter_namespace(path: str) -> None:
    """Move this process into a network namespace (setns, Linux 3.0)."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if libc.setns(descriptor, CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot enter {path}: {os.strerror(error)}")
    finally:
        os.close(descriptor)


@contextmanager
def open_network(setup: HostSetup) -> Iterator[Ring]:
    """The host's ring, in its namespace, with the groups joined."""
    enter_namespace(setup.namespace)
    comm, shared = setup.comm, setup.comm.workers > 1
    program = bpf.addressed_to(comm)
    with (
        Ring(setup.interface, comm.mtu, setup.rq_depth, program=program) as ring,
        RocePort(setup.interface, shared=shared) as port,
    ):
        port.join([group.ip for group in comm.groups])
        yield ring


@dataclass(frozen=True, slots=True)
class _Meters:
    """What is counted at one moment: packets by what became of them, and processor time."""

    counters: Counter[str]
    dropped: int
    held: Counter[tuple[Way, int]]
    cpu_seconds: float


@dataclass(slots=True)
class _Account:
    """An operation from when it was prepared on; ``hit`` is how many packets faults had struck before, by way.

    Packets are the endpoint's altogether, so what runs at the same time counts for each.
    """

    operation: Operation
    before: _Meters
    hit: dict[Way, int]
    failure: tuple[str, int | None] | None = None
    said: RankResult | None = None
    """The result, once it has ended."""


class Host:
    """One endpoint with its ring, its faults and its share of the progress table.

    ``ended`` has the numbers of operations that have ended since somebody last took them from there.
    """

    def __init__(self, setup: HostSetup, ring: Ring, interrupt: int, control: Connection) -> None:
        self._setup = setup
        self._ring = ring
        self._interrupt = interrupt
        self._control = control
        self._faults: dict[Way, Impairer] = {"rx": _impairer(setup, "rx"), "tx": _impairer(setup, "tx")}
        self.ended: deque[int] = deque()
        self.regroup(Regroup(setup.comm, setup.rank, setup.first_op))
        comm = setup.comm
        progress = np.memmap(setup.progress, np.int64, "r+", shape=(comm.size, comm.workers, 2))
        self._progress = progress[setup.rank, comm.worker]

    def regroup(self, command: Regroup) -> None:
        """Begin anew in a communicator; what injected faults hold back, and the ring, stay as they are."""
        setup = self._setup
        self.rank, self.comm = command.rank, command.comm
        self._accounts: dict[int, _Account] = {}
        self.ended.clear()
        self.endpoint = Endpoint(command.comm, command.rank, setup.config, setup.seed, command.first_op)
        self._station = Station(self.endpoint, Codec(command.comm, command.rank, setup.templates))
        live = Control(self._control, self._faults, self._station)
        live.put_in_place()
        nap_ns = nap_for(setup.rq_depth, self.endpoint.timing.chunk_ns)
        self.loop = Loop(self._station, self._ring, self._interrupt, self._on_event, nap_ns, live)

    def run_until(self, finished: Callable[[], bool], at_most: int | None = None) -> None:
        """Send and receive until ``finished``, the interrupt, or the time ``at_most`` (monotonic ns)."""

        def look() -> bool:
            counters = self.endpoint.counters
            self._progress[1] = counters["chunks_received"] + counters["writes_received"]
            return finished()

        self.loop.run_until(look, at_most)

    def _on_event(self, event: Event) -> None:
        match event:
            case PhaseEntered(phase=phase):
                self._progress[0] = PHASES.index(phase)
            case Completed(op=op):
                self._end(op, None)
            case Failed(op=op, reason=reason, suspect=suspect):
                self._end(op, (reason, suspect))

    def prepare(self, op: int, algorithm: Collective, data: U8, buffer: U8) -> None:
        """Have operation ``op`` ready; its buffers are in memory."""
        if not self.ended and all(account.said is not None for account in self._accounts.values()):
            for impairer in self._faults.values():
                impairer.log.clear()
            self._accounts.clear()
            self.loop.lateness = Lateness()
        operation = self.endpoint.prepare(partial(algorithm.make, data=data, buffer=buffer), op)
        hit: dict[Way, int] = {way: len(impairer.log) for way, impairer in self._faults.items()}
        self._accounts[op] = _Account(operation, self._meters(), hit)

    def begin(self, op: int) -> None:
        """Enter the barrier of an operation that was prepared."""
        if [*self._accounts] == [op]:
            self.loop.lateness = Lateness()
        self.endpoint.begin(now_ns(), op)

    def give_up(self, op: int, reason: str, suspect: int | None) -> None:
        """The operation ends here, if there still is one."""
        if op in self._accounts and self._accounts[op].said is None:
            self.endpoint.drop(op)
            self._end(op, (reason, suspect))

    def _end(self, op: int, failure: tuple[str, int | None] | None) -> None:
        account = self._accounts.get(op)
        if account is None or account.said is not None:
            return
        account.said = RankResult(
            rank=self.rank,
            phases=[(phase.value, at) for phase, at in account.operation.phases],
            failure=failure,
            cpu_seconds=time.process_time() - account.before.cpu_seconds,
            heard_at=self.endpoint.heard_at,
            late_ns=self.loop.lateness.longest_ns,
            late_counts=tuple(self.loop.lateness.counts),
            counters={},
            ring_dropped=0,
        )
        self.ended.append(op)

    def result(self, op: int) -> RankResult:
        """What is to say of an operation that has ended, with what became of packets up to now.

        What came after a rank's end, such as a repeat of what was merely late, belongs to the operation, too. KeyError
        where another was prepared when nothing was under way any more.
        """
        account, now = self._accounts[op], self._meters()
        assert account.said is not None
        before = account.before
        held = now.held.copy()
        held.subtract(before.held)
        return replace(
            account.said,
            counters={name: n - before.counters[name] for name, n in now.counters.items()},
            ring_dropped=now.dropped - before.dropped,
            hits=[(way, *hit) for way, it in self._faults.items() for hit in it.log[account.hit[way] :]],
            held=dict(held),
        )

    def _meters(self) -> _Meters:
        counters = Counter(self.endpoint.counters)
        counters.update(self._station.counters)
        counters["rc_retransmitted"] = self.endpoint.retransmitted
        counters["send_failures"] = self.loop.send_failures
        held = ((way, impairer.held()) for way, impairer in self._faults.items())
        return _Meters(
            counters=counters,
            dropped=self._ring.statistics()[1],
            held=Counter({(way, opcode): count for way, counts in held for opcode, count in counts.items()}),
            cpu_seconds=time.process_time(),
        )


def _impairer(setup: HostSetup, way: Way) -> Impairer:
    ranks = {peer.ip: peer.rank for peer in setup.comm.peers}
    return Impairer(setup.impairments, setup.seed, setup.rank, way, ranks)
