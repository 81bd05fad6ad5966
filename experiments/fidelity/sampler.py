"""Watches the machine while an operation is on; what it finds is judged by ``verdict``.

During the operation it only reads one file of the kernel, some ten times a second, and now and then the links' queues,
which no run notices; what needs a program to be started is asked for before and after.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from experiments.fidelity.queue_reader import QueueReader
from experiments.fidelity.samples import (
    Schedule,
    Totals,
    Watched,
    parse_queue_drops,
    parse_schedule,
    parse_socket_drops,
    parse_waiting,
)

PROGRAM_TIMEOUT_S = 10.0
QUEUE_LOOKS = 3
"""Of so many looks one is at the links' queues, too, which takes a millisecond or two on a fat tree of k = 4."""


class Sampler:
    """``switching`` tells the pid of ovs-vswitchd, ``hosts`` has those of each rank's endpoint, or its NIC's workers.

    ``injected`` tells the frames that faults on links have dropped so far, by sending interface. ``namespaces`` has
    for each host a process in whose network namespace its uplink is. Lives in that of the switches, once their ports
    are there.
    """

    def __init__(
        self,
        switching: Callable[[], int],
        hosts: Mapping[int, Sequence[int]],
        injected: Callable[[], Mapping[str, int]] = dict,
        namespaces: Iterable[int] = (),
    ) -> None:
        self._switching = switching
        self._hosts = dict(hosts)
        self._injected = injected
        self._links = QueueReader()
        self._uplinks = [QueueReader(pid) for pid in namespaces]
        self._names = self._links.names
        self._before = Totals(0)
        self._waiting: Counter[str] = Counter()
        self._looks = 0
        self._fill: dict[str, float] = {}
        self._queued = 0

    def begin(self) -> None:
        """An operation begins."""
        self._waiting.clear()
        self._looks = 0
        self._fill.clear()
        self._queued = 0
        self._before = self._totals()

    def look(self) -> None:
        """See what waits at the switches' ports at this moment."""
        self._looks += 1
        for index, waiting in parse_waiting(_read(Path("/proc/net/packet"))).items():
            name = self._names.get(index)
            if name is not None:
                self._waiting[name] = max(self._waiting[name], waiting)

        if self._looks % QUEUE_LOOKS == 1:
            self._look_at_queues()

    def _look_at_queues(self) -> None:
        """See what waits in the links' queues."""
        queued = 0
        for reader in (self._links, *self._uplinks):
            for name, queue in reader.read():
                if reader is self._links:
                    queued += queue.bytes
                if queue.packets:
                    self._fill[name] = max(self._fill.get(name, 0.0), queue.packets / queue.limit)
        self._queued = max(self._queued, queued)

    def end(self) -> Watched:
        """The operation has ended: all that was seen of it."""
        return Watched(
            self._before,
            self._totals(),
            dict(self._waiting),
            self._looks,
            dict(self._fill),
            self._queued,
            self._links.send_buffer,
        )

    def _totals(self) -> Totals:
        names = self._names.values()
        return Totals(
            at_ns=time.monotonic_ns(),
            switches=self._switching(),
            switching=self._threads(),
            hosts={rank: found for rank, pids in self._hosts.items() if (found := _schedules(pids))},
            queue_drops=parse_queue_drops(_says("tc", "-s", "-j", "qdisc", "show")),
            injected_drops=self._injected(),
            socket_drops=parse_socket_drops(_says("ss", "-0", "-a", "-m", "-n")),
            falls={name: int(_read(Path(f"/sys/class/net/{name}/carrier_down_count")) or 0) for name in names},
            dark=frozenset(name for name in names if _read(Path(f"/sys/class/net/{name}/carrier")).strip() != "1"),
        )

    def _threads(self) -> dict[str, Schedule]:
        with suppress(OSError):  # it has ended; whoever checks on it says so
            threads = list(Path(f"/proc/{self._switching()}/task").iterdir())
            return {thread.name: found for thread in threads if (found := _schedule(thread))}
        return {}


def _schedules(pids: Iterable[int]) -> Schedule | None:
    """Of processes altogether; None where one has ended."""
    found = [_schedule(Path(f"/proc/{pid}")) for pid in pids]
    return sum((it for it in found if it is not None), Schedule(0, 0)) if all(found) else None


def _schedule(folder: Path) -> Schedule | None:
    """None for a thread that has ended, and where the kernel does not keep these times."""
    with suppress(ValueError):
        return parse_schedule(_read(folder / "schedstat"))
    return None


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="ascii")
    return ""


def _says(*command: str) -> str:
    """A program's report; empty where it is missing or fails, for a run does not end because it is watched."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PROGRAM_TIMEOUT_S).stdout
    return ""
