"""Whether any packet came to a switch more often than its host had sent it: what a loop, or a storm, would look like.

Every link has to be captured for that, those of hosts as well: packets of reliable connections are sent again under
the same numbers, and only on its own link it shows how often a host has sent one. Multicast chunks are sent once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from experiments.analysis.packets import OUT
from experiments.analysis.points import Point
from experiments.analysis.trace import Trace
from topo.fabric import Fabric, FabricError


class Packet(NamedTuple):
    """What tells packets apart: all of their headers that the network does not change (``analysis.frames``)."""

    src: int
    dst: int
    tree: int
    opcode: int
    qpn: int
    psn: int
    word: int
    va: int
    bytes: int
    syndrome: int
    size: int


@dataclass(frozen=True, slots=True)
class Return:
    """A packet that came to ``switch`` more often than its host had ``sent`` it."""

    packet: Packet
    switch: str
    came: int
    sent: int


@dataclass(frozen=True, slots=True)
class Visits:
    """``packets`` were followed to switches, ``arrivals`` in all; ``unknown`` came from hosts that are not captured."""

    packets: int
    arrivals: int
    unknown: int
    returns: tuple[Return, ...]


def visits(trace: Trace, fabric: Fabric) -> Visits:
    """Follow every RoCEv2 packet through the fabric; FabricError for an interface that it has not."""
    frames = trace.frames
    ends = [_ends(point, fabric) for point in trace.points]
    packets = map(Packet._make, zip(*(frames[name].tolist() for name in Packet._fields), strict=True))
    sent: Counter[Packet] = Counter()
    came: Counter[tuple[Packet, str]] = Counter()
    for packet, point, direction in zip(packets, frames["point"].tolist(), frames["direction"].tolist(), strict=True):
        node, peer = ends[point]
        if direction == OUT and node in fabric.host:
            sent[packet] += 1
        receiver = peer if direction == OUT else node
        if receiver in fabric.switch:
            came[packet, receiver] += 1
    known = {point.host for point in trace.points}
    return Visits(
        packets=len(sent),
        arrivals=came.total(),
        unknown=sum(count for (packet, _), count in came.items() if packet.src not in known),
        returns=tuple(
            Return(packet, switch, count, sent[packet])
            for (packet, switch), count in came.items()
            if count > sent[packet] and packet.src in known
        ),
    )


def _ends(point: Point, fabric: Fabric) -> tuple[str, str]:
    """The node whose interface was captured, and what is at the other end of its link."""
    node, port = point.port or (point.name, -1)
    if port not in fabric.ports.get(node, {}):
        raise FabricError(f"{fabric.topology} has no interface {point.interface.name} (capture {point.name})")
    return node, fabric.ports[node][port]
