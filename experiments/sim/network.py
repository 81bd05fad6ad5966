"""The fabric in virtual time: an event heap, links with rate, delay and a finite queue, switches that execute rules.

Time is integer nanoseconds; a sequence number breaks ties, so that a run is a function of its inputs. Switches execute
the very rule values that the controller turns into OpenFlow; hosts are handed frames in batches, as a packet ring
hands them to a process that sleeps for a while between looks.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from controller.forwarding import lookup
from controller.rules import SwitchRules
from endpoints.core.pacing import SECOND
from topo.fabric import Fabric, link_key

Arrival = Callable[[bytes, int], None]
Fault = Callable[[str, bytes], Sequence[tuple[int, bytes]]]
"""(link key, frame) -> what comes out instead, each with an extra delay in ns: none, one, or several frames."""


class Clock:
    """The heap of things to come."""

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Do something at a time that is not past."""
        self._count += 1
        heapq.heappush(self._heap, (max(time, self.now), self._count, action))

    def step(self) -> bool:
        """Do the next thing; false if there is none."""
        if not self._heap:
            return False
        self.now, _, action = heapq.heappop(self._heap)
        action()
        return True


@dataclass(frozen=True, slots=True)
class LinkModel:
    """Every direction of every link: rate in bit/s, propagation delay in ns, queue in ns of the link's time."""

    rate_bps: int
    delay_ns: int = 1_000
    queue_ns: int = 500_000_000


class Network:
    """``rules`` by switch name; ``arrival`` by host name is called with each frame that reaches the host."""

    def __init__(self, fabric: Fabric, rules: Mapping[str, SwitchRules], model: LinkModel, clock: Clock) -> None:
        self._fabric = fabric
        self._rules = rules
        self._model = model
        self._clock = clock
        self._free: dict[tuple[str, int], int] = {}
        self._path: dict[tuple[str, int, bytes], tuple[int, ...]] = {}
        self._peer = {(node, port): peer for node, port, peer in fabric.directed_links}
        self.arrival: dict[str, Arrival] = {}
        self.fault: Fault | None = None
        self.forwarding_ns = 0
        """Time that the one processor on which all switches run takes for a copy of a frame; 0: none at all."""
        self._processor_free = 0
        self.link_bytes: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def send(self, node: str, port: int, frame: bytes) -> None:
        """Put a frame on the link behind ``port`` of ``node``."""
        peer = self._peer[node, port]
        key = link_key(node, peer)
        now = self._clock.now
        free = max(now, self._free.get((node, port), 0))
        if free - now > self._model.queue_ns:
            self.lost["queue"] += 1
            return
        free += -(-len(frame) * 8 * SECOND // self._model.rate_bps)
        self._free[node, port] = free
        self.link_bytes[key] += len(frame)
        copies: Sequence[tuple[int, bytes]] = [(0, frame)] if self.fault is None else self.fault(key, frame)
        self.lost["injected"] += not copies
        for delay, copy in copies:
            self._clock.at(free + self._model.delay_ns + delay, partial(self._arrive, peer, node, copy))

    def _arrive(self, node: str, sender: str, frame: bytes) -> None:
        if node in self._fabric.host:
            if node in self.arrival:
                self.arrival[node](frame, self._clock.now)
            return
        in_port = self._fabric.port_to[node][sender]
        for port in self._outputs(node, in_port, frame):
            if not self.forwarding_ns:
                self.send(node, port, frame)
                continue
            self._processor_free = max(self._processor_free, self._clock.now) + self.forwarding_ns
            self._clock.at(self._processor_free, partial(self.send, node, port, frame))

    def _outputs(self, switch: str, in_port: int, frame: bytes) -> tuple[int, ...]:
        key = switch, in_port, frame[30:34]
        if key not in self._path:
            destination = ".".join(map(str, frame[30:34]))
            ports = lookup(
                self._rules[switch],
                eth_type=int.from_bytes(frame[12:14], "big"),
                ip_proto=frame[23],
                ipv4_dst=destination,
                in_port=in_port,
            )
            self._path[key] = tuple(ports)
        return self._path[key]
