"""What the machine says of itself while an operation is on: values, and the texts of the kernel, tc and ss behind them.

Pure: ``sampler`` fetches the texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Schedule:
    """A thread's life in nanoseconds: on a processor, and ready to run but waiting for one."""

    ran_ns: int
    waited_ns: int

    def __add__(self, other: Schedule) -> Schedule:
        return Schedule(self.ran_ns + other.ran_ns, self.waited_ns + other.waited_ns)

    def __sub__(self, earlier: Schedule) -> Schedule:
        return Schedule(self.ran_ns - earlier.ran_ns, self.waited_ns - earlier.waited_ns)


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything that only grows. ``switching`` by thread of ovs-vswitchd, ``hosts`` by rank, drops by interface.

    ``queue_drops`` are frames that found a link's queue full at a switch, ``socket_drops`` those that found the socket
    full by which the userspace datapath receives from a port. ``falls`` is how often an interface has lost its link,
    ``dark`` are those that have none now. ``switches`` is the process id of ovs-vswitchd.
    """

    at_ns: int
    switches: int = 0
    switching: Mapping[str, Schedule] = field(default_factory=dict)
    hosts: Mapping[int, Schedule] = field(default_factory=dict)
    queue_drops: Mapping[str, int] = field(default_factory=dict)
    injected_drops: Mapping[str, int] = field(default_factory=dict)
    socket_drops: Mapping[str, int] = field(default_factory=dict)
    falls: Mapping[str, int] = field(default_factory=dict)
    dark: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Watched:
    """One operation: totals before and after it, and the most bytes of memory that waited unread at each port.

    A frame takes more memory than its length. ``looks`` is how often the ports were looked at. ``queue_fill`` is the
    most that a link's queue was filled, by sending interface, as a part of its limit; ``queued_bytes`` the most that
    waited in those of the switches together; ``send_buffer`` the memory that a socket may have in queues.
    """

    before: Totals
    after: Totals
    waiting: Mapping[str, int]
    looks: int
    queue_fill: Mapping[str, float] = field(default_factory=dict)
    queued_bytes: int = 0
    send_buffer: int = 0

    @property
    def switching(self) -> Schedule | None:
        """The thread of ovs-vswitchd that ran longest; None where the kernel does not tell."""
        first = self.before.switching
        spent = [now - first[thread] for thread, now in self.after.switching.items() if thread in first]
        return max(spent, key=lambda thread: thread.ran_ns, default=None)

    @property
    def host_waited_ns(self) -> int:
        """The longest that the endpoint of a host waited for a processor altogether."""
        first = self.before.hosts
        return max((now - first[rank]).waited_ns for rank, now in self.after.hosts.items()) if first else 0

    @property
    def queue_drops(self) -> dict[str, int]:
        """Frames that links' queues dropped in this operation, by sending interface."""
        return _added(self.before.queue_drops, self.after.queue_drops)

    @property
    def down(self) -> frozenset[str]:
        """Interfaces that had no link at some time of the operation."""
        fallen = frozenset(_added(self.before.falls, self.after.falls))
        return self.before.dark | fallen | self.after.dark

    @property
    def replaced(self) -> bool:
        """Whether another ovs-vswitchd took over, which knows nothing of the frames that the one before it held."""
        return self.before.switches != self.after.switches

    @property
    def injected_drops(self) -> dict[str, int]:
        """Frames that faults on links dropped in this operation, by sending interface; at switches, queues' as well."""
        return _added(self.before.injected_drops, self.after.injected_drops)

    @property
    def socket_drops(self) -> dict[str, int]:
        """Frames that the switches' sockets dropped in this operation, by receiving interface."""
        return _added(self.before.socket_drops, self.after.socket_drops)


def _added(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in grown.items() if count > 0}


def parse_schedule(text: str) -> Schedule:
    """From ``/proc/<pid>/schedstat`` (kernel: Documentation/scheduler/sched-stats.rst)."""
    ran, waited, *_ = text.split()
    return Schedule(int(ran), int(waited))


def parse_queue_drops(text: str) -> dict[str, int]:
    """Drops of the queues at the roots of all interfaces, from ``tc -s -j qdisc show``; a root counts its leaves'."""
    return {entry["dev"]: entry["drops"] for entry in json.loads(text or "[]") if entry.get("root")}


_SOCKET = re.compile(r"\*:(?P<name>\S+)\s.*?skmem:\([^)]*,d(?P<dropped>\d+)\)", re.DOTALL)


def parse_socket_drops(text: str) -> dict[str, int]:
    """Drops of packet sockets by interface, from ``ss -0 -a -m -n``; of several on one interface, the most."""
    table: dict[str, int] = {}
    for match in _SOCKET.finditer(text):
        table[match["name"]] = max(table.get(match["name"], 0), int(match["dropped"]))
    return table


def parse_waiting(text: str) -> dict[int, int]:
    """Bytes of memory that wait unread in packet sockets, by index of the interface, from ``/proc/net/packet``.

    Columns: socket, references, type, protocol, interface, running, receive memory, user, inode.
    """
    table: dict[int, int] = {}
    for line in text.splitlines()[1:]:
        column = line.split()
        index, waiting = int(column[4]), int(column[6])
        table[index] = max(table.get(index, 0), waiting)
    return table
