"""What links really carry, measured before a run: a burst over each link alone, from its one end to its other.

Frames of an Ethernet type for experiments are sent through the shaping of the sending interface and taken at the
receiving one with the kernel's own times, so that neither the switches, which drop them, nor this process decide about
the figure.
"""

from __future__ import annotations

import select
import socket
import statistics
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from experiments.fidelity.burst import Burst
from experiments.fidelity.verdict import PROBE_HIGH, PROBE_LOW
from topo.fabric import Fabric, interface, link_key
from topo.namespaces import network_of
from topo.shaping import LinkSpec

ETHERTYPE = 0x88B5
"""IEEE 802, local experimental Ethertype 1: no host takes it, and no rule of a switch matches it."""

NOBODY = bytes.fromhex("0200000000fe")

NO_TYPE, ALL_TYPES = 0, 3
"""What a socket receives. All, since a kernel datapath takes frames before they are told apart by type."""

PACKET_OUTGOING = 4
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35
TIMESPEC = struct.Struct("@ll")

PATIENCE_S = 0.25
"""Beyond twice the time that a burst should take; what has not come then is missing from the link's rate."""

TRIES = 5
"""Bursts over a link that is off, before the median is believed: a processor that was taken away for some milliseconds
makes one burst look slow, or fast where it was its first frames that came late."""

End = tuple[str, int, str]
"""A directed link: the sender, its port, the receiver."""

NamespaceOf = Callable[[str], int | None]
"""A node's process, in whose network namespace its interfaces are; None: in ours."""


def probe(fabric: Fabric, spec: LinkSpec, namespace_of: NamespaceOf) -> dict[str, int]:
    """Bit/s that directed links carried, by link key; empty where links are too slow, or their queues too short.

    What is off is tried again, with fewer others, before it is believed.
    """
    burst = Burst.of(spec)
    if burst is None:
        return {}
    ends = {link_key(end[0], end[2]): end for way in (0, 1) for end in (link.ends[way] for link in fabric.links)}
    found = _tried(fabric, burst, burst.chosen(list(ends.values())), namespace_of)
    off = [ends[link] for link, carried in found.items() if not PROBE_LOW <= carried / spec.rate_bps <= PROBE_HIGH]
    again = [_tried(fabric, burst, off, namespace_of) for _ in range(TRIES - 1)] if off else []
    return {
        link: round(statistics.median([carried, *(tried[link] for tried in again if link in tried)]))
        for link, carried in found.items()
    }


def _tried(fabric: Fabric, burst: Burst, ends: Sequence[End], namespace_of: NamespaceOf) -> dict[str, int]:
    found: dict[str, int] = {}
    for first in range(0, len(ends), burst.at_once):
        with ExitStack() as stack:
            streams = []
            for node, port, peer in ends[first : first + burst.at_once]:
                sender = stack.enter_context(_opened(node, port, NO_TYPE, namespace_of(node), burst))
                end = fabric.port_to[peer][node]
                receiver = stack.enter_context(_opened(peer, end, ALL_TYPES, namespace_of(peer), burst))
                streams.append(_Stream(link_key(node, peer), sender, receiver))
            _carry(streams, burst)
        found |= {stream.link: burst.carried_bps(stream.arrivals_ns) for stream in streams}
    return found


@dataclass(slots=True)
class _Stream:
    """One link that is tried: its ends, and when frames came."""

    link: str
    sender: socket.socket
    receiver: socket.socket
    arrivals_ns: list[int] = field(default_factory=list)


def _opened(node: str, port: int, ethertype: int, pid: int | None, burst: Burst) -> socket.socket:
    """A raw socket on an interface that holds a whole burst either way, each frame with the kernel's bookkeeping."""
    with network_of(pid):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
            opened.setsockopt(socket.SOL_SOCKET, option, 4 * burst.frames * burst.frame_bytes)
        opened.bind((interface(node, port), ethertype))
    except BaseException:
        opened.close()
        raise
    return opened


def _carry(streams: Sequence[_Stream], burst: Burst) -> None:
    """Send every stream's burst and note when its frames arrive."""
    frame = (NOBODY + NOBODY + ETHERTYPE.to_bytes(2, "big")).ljust(burst.frame_bytes, b"\0")
    waiting = {stream.receiver.fileno(): stream for stream in streams}
    arrival = select.poll()
    for receiver in waiting:
        arrival.register(receiver, select.POLLIN)
    for stream in streams:
        for _ in range(burst.frames):
            stream.sender.send(frame)
    deadline = time.monotonic() + 2 * burst.seconds + PATIENCE_S
    while waiting and (left := deadline - time.monotonic()) > 0:
        for ready, _ in arrival.poll(left * 1e3):
            stream = waiting[ready]
            _take(stream)
            if len(stream.arrivals_ns) >= burst.frames:
                arrival.unregister(ready)
                del waiting[ready]


def _take(stream: _Stream) -> None:
    """The times of all frames of ours that have come; others may pass, like a host's group reports."""
    while True:
        try:
            head, notes, _, sender = stream.receiver.recvmsg(14, socket.CMSG_SPACE(TIMESPEC.size))
        except BlockingIOError:
            return
        if sender[2] != PACKET_OUTGOING and head[12:] == ETHERTYPE.to_bytes(2, "big"):
            seconds, nanoseconds = TIMESPEC.unpack(notes[0][2])
            stream.arrivals_ns.append(seconds * 10**9 + nanoseconds)
