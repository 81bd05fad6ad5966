"""A fabric of :class:`FakeSwitch` under a planner, with frames followed by a walk that knows nothing of either.

Commands reach the switches in any order that OpenFlow allows: each switch's own in sequence, those of different
switches however a generator of chance has it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from controller.forwarding import FrameClass, forward
from controller.igmp import general_query
from controller.live import End
from controller.openflow13 import encode
from controller.planner import Planner, Programmed
from controller.rules import Barrier, SwitchRules
from tests.fake_openflow import PROTOCOL, Error, FakeSwitch
from topo.fabric import Fabric

IPV4, UDP = 0x0800, 17

Copy = tuple[str, int]
"""A copy of a frame on its arrival: (node, the port that it came in by)."""


def igmp_join(group: str) -> bytes:
    """A version 2 report (RFC 2236) in a frame; checksums are not looked at for its IPv4 header."""
    octets = bytes(map(int, group.split(".")))
    body = b"\x16\0\0\0" + octets
    total = sum(int.from_bytes(body[i : i + 2]) for i in range(0, 8, 2))
    total = (total & 0xFFFF) + (total >> 16)
    body = b"\x16\0" + (total ^ 0xFFFF).to_bytes(2) + octets
    header = bytes([0x45, 0, 0, 28, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 2]) + octets
    return b"\x01\x00\x5e" + octets[1:] + b"\x02\0\0\0\0\x01" + b"\x08\0" + header + body


class FakeFabric:
    """See the module. ``down`` is what the ports say; ``off`` are switches without a connection."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.planner = Planner(fabric)
        self.switches = {switch.name: FakeSwitch() for switch in fabric.switches}
        self.down: frozenset[End] = frozenset()
        self.off: set[str] = set()
        self.wanted: dict[str, list[str]] = {host: [] for host in fabric.host}
        for switch in self.switches:
            self.connect(switch)

    @property
    def rules(self) -> dict[str, SwitchRules]:
        """What every switch holds now."""
        return {name: switch.rules for name, switch in self.switches.items()}

    def connect(self, switch: str) -> None:
        """The switch finds its controller, and says what it has."""
        self.off.discard(switch)
        ports = {port: (switch, port) not in self.down for port in self.fabric.ports[switch]}
        self.planner.ports_seen(switch, ports)
        self.planner.switch_up(switch, self.switches[switch].rules)

    def disconnect(self, switch: str) -> None:
        """The switch loses its controller."""
        self.off.add(switch)
        self.planner.switch_down(switch)

    def restart_controller(self) -> None:
        """Another controller, which has seen nothing, and finds the switches that are connected."""
        self.planner = Planner(self.fabric)
        for switch in sorted(self.switches.keys() - self.off):
            self.connect(switch)
        self.planner.give_up()

    def join(self, host: str, group: str) -> None:
        """The host asks for the group, and does so again when it is asked."""
        self.wanted[host].append(group)
        self._report(host, group)

    def _report(self, host: str, group: str) -> None:
        edge = self.fabric.edge_of[host]
        self.planner.frame_seen(edge, self.fabric.port_to[edge][host], igmp_join(group))

    def fail(self, down: frozenset[End]) -> None:
        """Exactly these ends are down; whoever is connected reports what has changed at its ports."""
        dark = {far for near in down for far in [self._far(near)] if far[0] in self.fabric.switch} | {*down}
        before, self.down = self.down, frozenset(end for end in dark if end[0] in self.fabric.switch)
        for switch, port in sorted(before ^ self.down):
            if switch not in self.off:
                self.planner.port_changed(switch, port, up=(switch, port) not in self.down)

    def _far(self, end: End) -> End:
        peer = self.fabric.ports[end[0]][end[1]]
        return peer, self.fabric.port_to[peer][end[0]]

    def settle(self, rng: random.Random, look: Callable[[], None] = lambda: None) -> Programmed | None:
        """Carry out what the planner wants until it wants no more; ``look`` after every command that a switch took."""
        while batches := self.planner.replan():
            queues = {switch: list(commands) for switch, commands in batches.items()}
            while queues:
                switch = rng.choice(sorted(queues))
                self._take(switch, queues[switch].pop(0))
                if not queues[switch]:
                    del queues[switch]
                look()
        return self.planner.announce()

    def _take(self, switch: str, command: object) -> None:
        for message in encode(PROTOCOL, command):  # type: ignore[arg-type]
            assert not isinstance(self.switches[switch].send(message), Error)
        while self.switches[switch].handed_out:
            ports, query = self.switches[switch].handed_out.pop()
            assert query == general_query()
            for host in (self.fabric.ports[switch][port] for port in ports if (switch, port) not in self.down):
                for group in self.wanted[host]:
                    self._report(host, group)
        if isinstance(command, Barrier) and command.generation:
            self.planner.acknowledged(switch, command.generation)


def visits(
    fabric: Fabric,
    rules_of: Callable[[str, int], Mapping[str, SwitchRules]],
    sender: str,
    address: str,
    down: frozenset[End] = frozenset(),
) -> Counter[str]:
    """How often each node gets a copy of a frame from ``sender``; stops once a node has got five.

    ``rules_of(switch, number)`` are the rules that treat the copy ``number``.
    """
    frame = FrameClass(IPV4, UDP, address)
    got: Counter[str] = Counter()
    edge = fabric.edge_of[sender]
    copies: list[tuple[Copy, int]] = [((edge, fabric.port_to[edge][sender]), 0)]
    numbers = iter(range(1, 1 << 20))
    while copies and (not got or max(got.values()) < 5):
        (node, in_port), number = copies.pop()
        got[node] += 1
        if node in fabric.switch:
            onwards = _onwards(fabric, rules_of(node, number), node, in_port, frame, down)
            copies += [(copy, next(numbers)) for copy in onwards]
    return got


def _onwards(
    fabric: Fabric, rules: Mapping[str, SwitchRules], node: str, in_port: int, frame: FrameClass, down: frozenset[End]
) -> Iterator[Copy]:
    for port, peer in forward(fabric, rules, node, in_port, frame):
        arrival = peer, fabric.port_to[peer][node]
        if (node, port) not in down and arrival not in down:
            yield arrival
