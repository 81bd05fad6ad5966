"""Impairments on the links of a running fabric: the one thing that consoles, timelines and books need to know.

Lives in the network namespace of the switches; reaches a host's interface through the host's process. All that it
makes (classes, queues, filters, ifbs) is in those namespaces and ends with them, whatever becomes of this process.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import update_wrapper
from itertools import groupby
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from topo import tc
from topo.fabric import Fabric, interface
from topo.impairments.counts import Reading, parse_reading
from topo.impairments.model import Impairment, ImpairmentError, Mechanism, Observed
from topo.impairments.port import Port, Step
from topo.shaping import LinkSpec

PATIENCE_S = 15.0
"""How long frames that are held back may take to come out: the longest delay is 10 s."""
LOOK_S = 0.002


P = ParamSpec("P")
T = TypeVar("T")


def _alone(
    method: Callable[Concatenate[LinkImpairments, P], T],
) -> Callable[Concatenate[LinkImpairments, P], T]:
    """The method, one caller at a time."""

    def locked(self: LinkImpairments, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.lock:
            return method(self, *args, **kwargs)

    update_wrapper(locked, method)
    return locked


class LinkImpairments:
    """See the module. ``features`` are the kernel's.

    ``namespace_of`` gives the process in whose network namespace a node's interfaces are; None: in this one.

    Use as::

        links = LinkImpairments(fabric, spec, features_of(platform.features.items()), net.namespace_of, seed)
        links.check("e00", "a00", parse("loss", ["2%"]))    # ImpairmentError if it cannot be done here
        links.add("f1", "e00", "a00", parse("loss", ["2%"]))
        links.observe()["f1"].struck
        links.clear("f1").struck
    """

    def __init__(
        self,
        fabric: Fabric,
        spec: LinkSpec,
        features: Collection[str],
        namespace_of: Callable[[str], int | None],
        seed: int = 0,
    ) -> None:
        self._fabric = fabric
        self._spec = spec
        self._features = frozenset(features)
        self._namespace_of = namespace_of
        self._seed = seed
        self._ports: dict[tuple[str, int], Port] = {}
        self._where: dict[str, tuple[str, int]] = {}
        self._past: Counter[str] = Counter()
        self.lock = threading.RLock()  # a timeline's thread adds and clears while others observe

    def check(self, sender: str, receiver: str, impairment: Impairment, mechanism: Mechanism | None = None) -> None:
        """Whether it could be added now, without doing anything: ImpairmentError or FabricError if not."""
        self._port(self._end(sender, receiver, impairment)).add("", impairment, mechanism)

    @_alone
    def add(
        self, name: str, sender: str, receiver: str, impairment: Impairment, mechanism: Mechanism | None = None
    ) -> Observed:
        """Impair what ``sender`` sends to its neighbour ``receiver``, from the moment this returns.

        ``name`` is the caller's, unique in the fabric. Returns what will be observed, with nothing struck yet. Raises
        ImpairmentError, FabricError (no such link), or topo.tc.BatchError (the kernel refuses), and has then changed
        nothing.
        """
        if name in self._where:
            raise ImpairmentError(f"{name}: there is an impairment of that name")
        end = self._end(sender, receiver, impairment)
        port, steps = self._port(end).add(name, impairment, mechanism)
        pid = self._namespace_of(end[0])
        try:
            _run(pid, steps)
        except BaseException:
            removal = port.remove(name)[1]
            for step in (*removal.stop, *removal.remove):
                with suppress(tc.BatchError):  # not reached
                    _run(pid, [step])
            raise
        self._ports[end] = port
        self._where[name] = end
        return Reading({}, {}, {}).observed(port.placed[-1])

    @_alone
    def observe(self) -> dict[str, Observed]:
        """What every impairment that stands has done so far, by name."""
        readings: dict[int | None, Reading] = {}
        found: dict[str, Observed] = {}
        for end, port in self._ports.items():
            pid = self._namespace_of(end[0])
            if port.placed and pid not in readings:
                readings[pid] = _read(pid)
            found |= {placed.name: readings[pid].observed(placed) for placed in port.placed}
        return {name: found[name] for name in self._where}

    @_alone
    def clear(self, name: str) -> Observed:
        """Take one away; what it has done altogether. Frames that it holds back come out first, within its time."""
        end = self._where.get(name)
        if end is None:
            raise ImpairmentError(f"{name}: there is no impairment of that name")
        port, removal = self._ports[end].remove(name)
        pid = self._namespace_of(end[0])
        _run(pid, removal.stop)
        reading = _read(pid)
        deadline = time.monotonic() + PATIENCE_S
        while removal.ifb and not reading.empty(removal.ifb) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            reading = _read(pid)
        seen = reading.observed(removal.placed)
        _run(pid, removal.remove)
        self._ports[end] = port
        del self._where[name]
        self._past[interface(*end)] += seen.dropped
        return seen

    @_alone
    def clear_all(self) -> dict[str, Observed]:
        """Take all away, the latest first."""
        return {name: self.clear(name) for name in reversed(list(self._where))}

    @_alone
    def injected(self) -> Mapping[str, int]:
        """Frames dropped on purpose by sending interface, ever, those of impairments that are gone included."""
        total = Counter(self._past)
        for name, seen in self.observe().items():
            total[interface(*self._where[name])] += seen.dropped
        return {place: count for place, count in total.items() if count}

    def _end(self, sender: str, receiver: str, impairment: Impairment) -> tuple[str, int]:
        """The node and port that act: the sender's; to set a link down, a switch's, since a host's forgets routes."""
        self._fabric.link_between(sender, receiver)
        node, peer = sender, receiver
        if impairment.kind == "down" and sender in self._fabric.host:
            node, peer = receiver, sender
        return node, self._fabric.port_to[node][peer]

    def _port(self, end: tuple[str, int]) -> Port:
        return self._ports.get(end) or Port(interface(*end), self._spec, self._features, self._seed)


def _run(pid: int | None, steps: Iterable[Step]) -> None:
    for program, group in groupby(steps, key=lambda step: step.program):
        tc.batch(program, [step.line for step in group], pid)


def _read(pid: int | None) -> Reading:
    devices = Path(f"/proc/{pid or 'self'}/net/dev").read_text(encoding="ascii")
    return parse_reading(tc.run(pid, "tc", "-s", "-j", "qdisc", "show"), devices)
