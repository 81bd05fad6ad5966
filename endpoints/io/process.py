"""A host's process: forked from a warm parent, enters its host's network namespace, runs operations on command.

The parent imports everything once and forks (importing Scapy and numpy in 128 processes would take a minute of CPU).
Parent and child talk over a pipe: commands in, one answer each. Buffers are files that both map, so that whoever asked
for an operation judges its result and not the endpoint that made it.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np

from endpoints.collectives.registry import collective
from endpoints.core.communicator import Communicator
from endpoints.core.config import ProtocolConfig
from endpoints.core.endpoint import Endpoint
from endpoints.core.events import Completed, Event, Failed, PhaseEntered
from endpoints.core.packets import U8, Opcode
from endpoints.core.states import Phase
from endpoints.impairments.impairer import Impairer
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.clock import now_ns
from endpoints.io.lateness import Lateness
from endpoints.io.live_faults import Control, Way
from endpoints.io.loop import Loop, nap_for
from endpoints.io.ring import Ring
from endpoints.io.roce_port import RocePort
from endpoints.station import Station
from endpoints.wire.codec import Codec

CLONE_NEWNET = 0x40000000
UNWRITTEN = 0xA5
"""What a receive buffer holds before an operation, so that a byte that nobody wrote is not mistaken for a zero."""

PHASES = tuple(Phase)


@dataclass(frozen=True, slots=True)
class HostSetup:
    """All that one endpoint needs to begin. ``namespace`` is a path such as ``/proc/123/ns/net``."""

    namespace: str
    interface: str
    comm: Communicator
    rank: int
    config: ProtocolConfig
    templates: Mapping[Opcode, bytes]
    seed: int
    rq_depth: int
    impairments: tuple[ImpairmentSpec, ...]
    progress: Path


@dataclass(frozen=True, slots=True)
class RunOperation:
    """Prepare one collective, answer :class:`Ready`, await :class:`Go`. ``data`` and ``buffer`` are files."""

    algorithm: str
    data: Path
    buffer: Path


@dataclass(frozen=True, slots=True)
class Go:
    """Enter the barrier of the prepared operation at this time (monotonic ns)."""

    start_at: int


@dataclass(frozen=True, slots=True)
class Abort:
    """Give up the operation that is prepared or under way, for this reason; nothing where it has ended by itself."""

    reason: str
    suspect: int | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """Say again what there was to say of the last operation, with the packets that came after its end."""


@dataclass(frozen=True, slots=True)
class Regroup:
    """Be ``rank`` of another communicator from now on, and answer :class:`Ready`.

    Nothing of earlier operations goes on; the next one has the number ``first_op``. Live faults stay as they are.
    """

    comm: Communicator
    rank: int
    first_op: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End the process."""


Command = HostSetup | RunOperation | Go | Abort | Settle | Regroup | Stop


@dataclass(frozen=True, slots=True)
class Ready:
    """The endpoint is up (ring open, groups joined) or regrouped, or the operation is prepared (buffers in memory)."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The endpoint's process met an exception."""

    rank: int
    trace: str


@dataclass(frozen=True, slots=True)
class RankResult:
    """What one rank says of one operation; its buffer is judged by others. Times in monotonic ns.

    ``gone`` is how its process ended, said by whoever waited for it.
    """

    rank: int
    phases: list[tuple[str, int]]
    failure: tuple[str, int | None] | None
    counters: dict[str, int]
    ring_dropped: int
    cpu_seconds: float
    heard_at: int = 0
    """When anything last came from any rank."""
    late_ns: int = 0
    """The longest that something due had to wait for the processor."""
    late_counts: tuple[int, ...] = ()
    """How often something waited, by class of ``io.lateness.BOUNDS_NS``."""
    hits: list[tuple[Any, ...]] = field(default_factory=list)
    held: dict[tuple[Way, int], int] = field(default_factory=dict)
    """By way and opcode, how many more packets faults held back at the end than at the beginning."""
    gone: str | None = None


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


@dataclass(slots=True)
class HostProcess:
    """The parent's handle of one endpoint process."""

    rank: int
    process: ForkProcess
    pipe: Connection
    control: Connection
    """For ``io.live_faults``."""

    def send(self, command: Command) -> None:
        """Give a command."""
        self.pipe.send(command)


def fork_hosts(count: int) -> list[HostProcess]:
    """Fork ``count`` endpoint processes, which wait for their :class:`HostSetup`. Call it before any thread starts."""
    context = multiprocessing.get_context("fork")
    gc.collect()
    gc.freeze()
    hosts = []
    for rank in range(count):
        (ours, theirs), (our_control, their_control) = context.Pipe(), context.Pipe()
        process = context.Process(
            target=_main, args=(rank, theirs, their_control), name=f"endpoint-{rank}", daemon=True
        )
        process.start()
        theirs.close()
        their_control.close()
        hosts.append(HostProcess(rank, process, ours, our_control))
    gc.unfreeze()
    return hosts


def _main(rank: int, pipe: Connection, control: Connection) -> None:
    try:
        setup = pipe.recv()
        if isinstance(setup, Stop):
            return
        _serve(setup, pipe, control)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        pass
    except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
        pipe.send(Crashed(rank, traceback.format_exc()))


def _serve(setup: HostSetup, pipe: Connection, control: Connection) -> None:
    enter_namespace(setup.namespace)
    groups = [group.ip for group in setup.comm.groups]
    with Ring(setup.interface, setup.comm.mtu, setup.rq_depth) as ring, RocePort(setup.interface) as port:
        port.join(groups)
        host = _Host(setup, ring, pipe.fileno(), control)
        pipe.send(Ready())
        while True:
            host.loop.run_until(pipe.poll)
            match pipe.recv():
                case RunOperation() as command:
                    host.prepare(command)
                    pipe.send(Ready())
                case Go() as command:
                    host.run(command)
                case Abort() as command:
                    host.give_up(command)
                case Settle():
                    host.settle()
                case Regroup() as command:
                    host.regroup(command)
                    pipe.send(Ready())
                case Stop():
                    return
            if host.result is not None:
                pipe.send(host.result)
                host.result = None


class _Host:
    """One endpoint with its ring, its faults and its share of the progress table.

    ``result`` is what there is to say of an operation that has ended.
    """

    def __init__(self, setup: HostSetup, ring: Ring, interrupt: int, control: Connection) -> None:
        self._setup = setup
        self._ring = ring
        self._interrupt = interrupt
        self._control = control
        self._faults: dict[Way, Impairer] = {"rx": _impairer(setup, "rx"), "tx": _impairer(setup, "tx")}
        self.result: RankResult | None = None
        self._failure: tuple[str, int | None] | None = None
        self.regroup(Regroup(setup.comm, setup.rank, first_op=1))
        self._progress = np.memmap(setup.progress, np.int64, "r+", shape=(setup.comm.size, 2))

    def regroup(self, command: Regroup) -> None:
        """Begin anew in a communicator; what injected faults hold back, and the ring, stay as they are."""
        setup = self._setup
        self._rank, self._under_way = command.rank, False
        self.endpoint = Endpoint(command.comm, command.rank, setup.config, setup.seed, command.first_op)
        self._station = Station(self.endpoint, Codec(command.comm, command.rank, setup.templates))
        live = Control(self._control, self._faults, self._station)
        live.put_in_place()
        nap_ns = nap_for(setup.rq_depth, self.endpoint.timing.chunk_ns)
        self.loop = Loop(self._station, self._ring, self._interrupt, self._on_event, nap_ns, live)

    def _on_event(self, event: Event) -> None:
        match event:
            case PhaseEntered(phase=phase):
                self._progress[self._setup.rank, 0] = PHASES.index(phase)
            case Completed():
                self._under_way = False
            case Failed(reason=reason, suspect=suspect):
                self._under_way, self._failure = False, (reason, suspect)

    def prepare(self, command: RunOperation) -> None:
        """Have the buffers in memory: a page fault costs more than a packet."""
        buffer = _map(command.buffer, "r+")
        buffer[:] = UNWRITTEN
        data = np.array(_map(command.data, "r"))
        self._operation = self.endpoint.prepare(partial(collective(command.algorithm).make, data=data, buffer=buffer))
        self._under_way, self._failure = True, None
        for impairer in self._faults.values():
            impairer.log.clear()
        self.loop.lateness = Lateness()
        self._held = self._held_back()
        self._counted, self._dropped = self._counters(), self._ring.statistics()[1]
        self._cpu = time.process_time()

    def run(self, command: Go) -> None:
        """The prepared operation from its start until it ends, or something else is asked for."""
        self.loop.run_until(lambda: False, at_most=command.start_at)
        self.loop.lateness = Lateness()
        self.endpoint.begin(now_ns())
        self.loop.run_until(self._finished)
        if not self._under_way:
            self._report()

    def give_up(self, command: Abort) -> None:
        """The operation ends here, if there still is one."""
        if self._under_way:
            self._under_way, self._failure = False, (command.reason, command.suspect)
            self._report()

    def _report(self) -> None:
        self.result = self._said = RankResult(
            rank=self._rank,
            phases=[(phase.value, at) for phase, at in self._operation.phases],
            failure=self._failure,
            cpu_seconds=time.process_time() - self._cpu,
            heard_at=self.endpoint.heard_at,
            late_ns=self.loop.lateness.longest_ns,
            late_counts=tuple(self.loop.lateness.counts),
            **self._books(),
        )

    def settle(self) -> None:
        """What came after a rank's end, such as a repeat of what was merely late, belongs to the operation, too."""
        self.result = self._said = replace(self._said, **self._books())

    def _books(self) -> dict[str, Any]:
        """What became of packets since the operation was prepared."""
        held = self._held_back()
        held.subtract(self._held)
        return {
            "counters": {name: n - self._counted.get(name, 0) for name, n in self._counters().items()},
            "ring_dropped": self._ring.statistics()[1] - self._dropped,
            "hits": [(way, *hit) for way, impairer in self._faults.items() for hit in impairer.log],
            "held": dict(held),
        }

    def _finished(self) -> bool:
        counters = self.endpoint.counters
        self._progress[self._setup.rank, 1] = counters["chunks_received"] + counters["writes_received"]
        return not self._under_way

    def _held_back(self) -> Counter[tuple[Way, int]]:
        """Packets that faults hold back now, by way and opcode."""
        held = ((way, impairer.held()) for way, impairer in self._faults.items())
        return Counter({(way, opcode): count for way, counts in held for opcode, count in counts.items()})

    def _counters(self) -> dict[str, int]:
        total = dict(self.endpoint.counters)
        total.update(self._station.counters)
        total["rc_retransmitted"] = self.endpoint.retransmitted
        total["send_failures"] = self.loop.send_failures
        return total


def _impairer(setup: HostSetup, way: Way) -> Impairer:
    ranks = {peer.ip: peer.rank for peer in setup.comm.peers}
    return Impairer(setup.impairments, setup.seed, setup.rank, way, ranks)


def _map(path: Path, mode: str) -> U8:
    if path.stat().st_size == 0:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, mode)  # type: ignore[call-overload]
