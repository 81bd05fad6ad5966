"""A collective in virtual time: a station per rank on a virtual fabric, run until everybody is done or time is up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from typing import Any

import numpy as np

from controller.live import Live
from controller.plan import assign_slots, make_plan
from endpoints.collectives.registry import Collective
from endpoints.core.communicator import Communicator
from endpoints.core.config import ProtocolConfig
from endpoints.core.endpoint import Endpoint
from endpoints.core.events import Completed, Failed
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8, Opcode
from endpoints.station import Impairments, Station, Wire
from endpoints.wire.codec import Codec
from experiments.sim.network import Clock, LinkModel, Network
from topo.fabric import Fabric

TRANSMIT_BUDGET = 64
STRIDE_MARGIN = 128
"""Bytes of a ring slot beyond the MTU: every header and the ICRC."""


class Host:
    """A rank in virtual time. It looks at its ring ``nap_ns`` after a frame came, as a real host's process would."""

    def __init__(self, name: str, station: Station, network: Network, clock: Clock, nap_ns: int) -> None:
        self.name = name
        self.station = station
        self.ends: dict[int, Completed | Failed] = {}
        """How operations ended, by their numbers."""
        self.alive = True
        self._network = network
        self._clock = clock
        self._nap = nap_ns
        self._inbox: list[bytes] = []
        self._due: int | None = None
        self._stride = station.endpoint.comm.mtu + STRIDE_MARGIN
        network.arrival[name] = self._arrive

    def _arrive(self, frame: bytes, now: int) -> None:
        if not self._inbox:
            self._wake_at(now + self._nap)
        self._inbox.append(frame)

    def _wake_at(self, at: int) -> None:
        """Sleep no longer than until then."""
        if self._due is None or at < self._due:
            self._due = at
            self._clock.at(at, partial(self._wake, at))

    def _wake(self, at: int) -> None:
        if self.alive and at == self._due:  # else it has been awake since, and went to sleep until another time
            self._due = None
            self._take_inbox()
            self.station.handle_timer(self._clock.now)
            self.pump()

    def _take_inbox(self) -> None:
        if not self._inbox:
            return
        frames = np.zeros((len(self._inbox), self._stride), np.uint8)
        for row, frame in zip(frames, self._inbox, strict=True):
            row[: len(frame)] = np.frombuffer(frame, np.uint8)
        lengths = np.array([len(frame) for frame in self._inbox], np.int32)
        self._inbox = []
        self.station.receive(frames, lengths, self._clock.now)

    def pump(self) -> None:
        """Transmit until there is nothing, take the events, arrange the next call."""
        now = self._clock.now
        endpoint = self.station.endpoint
        more = True
        while more:
            for frame in self.station.transmit(now, TRANSMIT_BUDGET):
                self._network.send(self.name, 0, bytes(frame))
            more = endpoint.more
        while (event := endpoint.next_event()) is not None:
            if isinstance(event, Completed | Failed):
                self.ends[event.op] = event
        at = self.station.next_timeout()
        if at is not None:
            self._wake_at(max(at, now + 1))


@dataclass(frozen=True)
class Work:
    """One operation: what each rank contributes, and what it receives into."""

    collective: Collective
    data: Sequence[U8]
    buffers: list[U8]


@dataclass
class Outcome:
    """What became of one operation: per rank its end (Completed, Failed, or None for a rank that died), its buffer."""

    ends: list[Completed | Failed | None]
    buffers: list[U8]
    seconds: float
    counters: Counter[str] = field(default_factory=Counter)

    @property
    def completed(self) -> list[int]:
        """Ranks that completed."""
        return [rank for rank, end in enumerate(self.ends) if isinstance(end, Completed)]

    @property
    def failures(self) -> dict[int, Failed]:
        """Ranks that failed, and how."""
        return {rank: end for rank, end in enumerate(self.ends) if isinstance(end, Failed)}


def build_world(
    fabric: Fabric,
    comm: Communicator,
    templates: Mapping[Opcode, bytes],
    *,
    model: LinkModel | None = None,
    **options: Any,
) -> World:
    """A world on ``fabric`` with the rules that the controller plans when every host has joined every tree.

    ``templates`` are those of ``endpoints.wire.templates``; ``options`` are those of :class:`World`.
    """
    groups = [str(IPv4Address(group.ip)) for group in comm.groups]
    members = {group: frozenset(fabric.host) for group in groups}
    plan = make_plan(Live(fabric), members, assign_slots(groups, {}))
    clock = Clock()
    network = Network(fabric, plan.rules, model or LinkModel(comm.rate_bps), clock)
    return World(network, clock, comm, [Codec(comm, rank, templates) for rank in range(comm.size)], **options)


class World:
    """``wires`` and ``impairments`` (rx, tx) are by rank. Operations run on the same endpoints."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        comm: Communicator,
        wires: Sequence[Wire],
        *,
        config: ProtocolConfig | None = None,
        impairments: Mapping[int, tuple[Impairments | None, Impairments | None]] | None = None,
        nap_ns: int = 1_000_000,
        seed: int = 0,
        first_op: int = 1,
    ) -> None:
        self.clock = clock
        self.network = network
        self.comm = comm
        self.hosts: list[Host] = []
        for peer in comm.peers:
            endpoint = Endpoint(comm, peer.rank, config, seed, first_op)
            rx, tx = (impairments or {}).get(peer.rank, (None, None))
            station = Station(endpoint, wires[peer.rank], rx, tx)
            self.hosts.append(Host(peer.name, station, network, clock, nap_ns))

    def kill(self, rank: int) -> None:
        """A rank dies: it neither sends nor receives from now on."""
        self.hosts[rank].alive = False

    def kill_at(self, rank: int, at: int) -> None:
        """A rank dies at a time."""
        self.clock.at(at, partial(self.kill, rank))

    def run(
        self, collective: Collective, data: Sequence[U8], size: int, limit_ns: int, memory: Sequence[U8] = ()
    ) -> Outcome:
        """Run one operation: ``data`` by rank (empty where a rank contributes nothing), at most ``limit_ns`` long.

        ``memory`` has what each rank receives into, that of a ``ReceiveBuffer``; new if left out.
        """
        total = collective.buffer_bytes(self.comm.size, size)
        buffers = list(memory) or [np.zeros(total, np.uint8) for _ in self.hosts]
        return self.run_together([Work(collective, data, buffers)], limit_ns)[0]

    def run_together(self, works: Sequence[Work], limit_ns: int) -> list[Outcome]:
        """Run operations that all begin now; the counters are those of the endpoints, for all of them together."""
        begun = self.clock.now
        numbers = [0] * len(works)  # of nobody, if nobody lives
        for rank, host in enumerate(self.hosts):
            if host.alive:
                start = host.station.endpoint.start
                numbers = [
                    start(partial(_make, it.collective, it.data[rank], it.buffers[rank]), begun).op for it in works
                ]
                host.pump()
        while not self._settled(numbers) and self.clock.now - begun <= limit_ns and self.clock.step():
            pass
        counters: Counter[str] = Counter()
        for host in self.hosts:
            counters.update(host.station.endpoint.counters)
        outcomes = []
        for op, work in zip(numbers, works, strict=True):
            ends = [host.ends.get(op) if host.alive else None for host in self.hosts]
            last = max((end.now for end in ends if end is not None), default=self.clock.now)
            outcomes.append(Outcome(ends, work.buffers, (last - begun) / 1e9, counters))
        return outcomes

    def _settled(self, numbers: Sequence[int]) -> bool:
        return all(op in host.ends for host in self.hosts if host.alive for op in numbers)


def _make(collective: Collective, data: U8, buffer: U8, services: Services, op: int) -> Operation:
    return collective.make(services, op, data, buffer)
