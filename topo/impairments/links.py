"""Impairments on the links of a running fabric: the one thing that consoles, timelines and books need to know.

Lives in the network namespace of the switches; reaches a host's interface through the host's process. All that it
makes (classes, queues, filters, ifbs) is in those namespaces and ends with them, whatever becomes of this process.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import update_wrapper
from itertools import chain, groupby
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from topo import tc
from topo.fabric import Fabric, interface
from topo.impairments.counts import NOTHING, Reading, parse_reading
from topo.impairments.model import Impairment, ImpairmentError, Mechanism, Observed
from topo.impairments.port import Port, Removal, Step
from topo.shaping import LinkSpec

PATIENCE_S = 15.0
"""How long frames that are held back may take to come out: the longest delay is 10 s."""
LOOK_S = 0.002
AT_A_TIME = 4
"""Namespaces that are worked on."""

End = tuple[str, int]
"""A node and its port."""

Pair = tuple[str, str]
"""Sender and receiver."""

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
        self._ports: dict[End, Port] = {}
        self._where: dict[str, End] = {}
        self._before: dict[str, Reading] = {}
        """What had been counted before an impairment was put in, by its name."""
        self._past: Counter[str] = Counter()
        self.lock = threading.RLock()  # a timeline's thread adds and clears while others observe

    def check(self, sender: str, receiver: str, impairment: Impairment, mechanism: Mechanism | None = None) -> None:
        """Whether it could be added now, without doing anything: ImpairmentError or FabricError if not."""
        self._port(self._end(sender, receiver, impairment)).add("", impairment, mechanism)

    def add(
        self, name: str, sender: str, receiver: str, impairment: Impairment, mechanism: Mechanism | None = None
    ) -> Observed:
        """Impair what ``sender`` sends to its neighbour ``receiver``, from the moment this returns.

        ``name`` is the caller's, unique in the fabric. Returns what will be observed, with nothing struck yet. Raises
        ImpairmentError, FabricError (no such link), or topo.tc.BatchError (the kernel refuses), and has then changed
        nothing.
        """
        return self.add_all({name: (sender, receiver)}, impairment, mechanism)[name]

    @_alone
    def add_all(
        self, ways: Mapping[str, Pair], impairment: Impairment, mechanism: Mechanism | None = None
    ) -> dict[str, Observed]:
        """The same at many places, sender and receiver by name: at each or at none, in one go for each namespace."""
        ports: dict[End, Port] = {}
        ends: dict[str, End] = {}
        steps: dict[int | None, list[Step]] = {}
        for name, (sender, receiver) in ways.items():
            if name in self._where:
                raise ImpairmentError(f"{name}: there is an impairment of that name")
            end = ends[name] = self._end(sender, receiver, impairment)
            ports[end], more = (ports.get(end) or self._port(end)).add(name, impairment, mechanism)
            steps.setdefault(self._namespace_of(end[0]), []).extend(more)
        before = _in_each(steps, _read)
        try:
            _in_each(steps, lambda pid: _run(pid, sorted(steps[pid], key=_program)))  # "ip" makes what "tc" acts on
        except BaseException:
            for name, end in ends.items():
                ports[end], removal = ports[end].remove(name)
                for step in (*removal.stop, *removal.remove):
                    with suppress(tc.BatchError):  # not reached
                        _run(self._namespace_of(end[0]), [step])
            raise
        self._ports |= ports
        self._where |= ends
        for name, end in ends.items():
            self._before[name] = before[self._namespace_of(end[0])]
        placed = {one.name: one for port in ports.values() for one in port.placed}
        return {name: NOTHING.observed(placed[name], NOTHING) for name in ways}

    @_alone
    def observe(self) -> dict[str, Observed]:
        """What every impairment that stands has done so far, by name."""
        pids = {end: self._namespace_of(end[0]) for end, port in self._ports.items() if port.placed}
        readings = _in_each(set(pids.values()), _read)
        placed = {one.name: one for end in pids for one in self._ports[end].placed}
        return {
            name: readings[pids[end]].observed(placed[name], self._before[name]) for name, end in self._where.items()
        }

    def clear(self, name: str) -> Observed:
        """Take one away; what it has done altogether. Frames that it holds back come out first, within its time."""
        return self.clear_all([name])[name]

    @_alone
    def clear_all(self, names: Collection[str] | None = None) -> dict[str, Observed]:
        """Take these away, or all, in one go for each namespace; what each has done."""
        removals: dict[int | None, list[Removal]] = {}
        ports: dict[End, Port] = {}
        wanted = list(self._where) if names is None else list(names)
        for name in wanted:
            end = self._where.get(name)
            if end is None:
                raise ImpairmentError(f"{name}: there is no impairment of that name")
            ports[end], removal = ports.get(end, self._ports[end]).remove(name)
            removals.setdefault(self._namespace_of(end[0]), []).append(removal)
        readings = _in_each(removals, lambda pid: _stopped(pid, removals[pid]))
        placed = {one.placed.name: (pid, one.placed) for pid, its in removals.items() for one in its}
        found = {name: readings[pid].observed(one, self._before[name]) for name, (pid, one) in placed.items()}
        self._ports |= ports
        for name in wanted:
            self._past[interface(*self._where.pop(name))] += found[name].dropped
            del self._before[name]
        return {name: found[name] for name in wanted}

    @_alone
    def injected(self) -> Mapping[str, int]:
        """Frames dropped on purpose by sending interface, ever, those of impairments that are gone included."""
        total = Counter(self._past)
        for name, seen in self.observe().items():
            total[interface(*self._where[name])] += seen.dropped
        return {place: count for place, count in total.items() if count}

    def _end(self, sender: str, receiver: str, impairment: Impairment) -> End:
        """The node and port that act: the sender's; to set a link down, a switch's, since a host's forgets routes."""
        self._fabric.link_between(sender, receiver)
        node, peer = sender, receiver
        if impairment.kind == "down" and sender in self._fabric.host:
            node, peer = receiver, sender
        return node, self._fabric.port_to[node][peer]

    def _port(self, end: End) -> Port:
        return self._ports.get(end) or Port(interface(*end), self._spec, self._features, self._seed)


def _run(pid: int | None, steps: Iterable[Step]) -> None:
    for program, group in groupby(steps, key=lambda step: step.program):
        tc.batch(program, [step.line for step in group], pid)


def _read(pid: int | None) -> Reading:
    devices = Path(f"/proc/{pid or 'self'}/net/dev").read_text(encoding="ascii")
    return parse_reading(tc.run(pid, "tc", "-s", "-j", "qdisc", "show"), devices)


def _stopped(pid: int | None, removals: Collection[Removal]) -> Reading:
    """What had been counted when all that these held back had come out, or a time had passed in which it should have.

    They are gone then.
    """
    _run(pid, chain.from_iterable(removal.stop for removal in removals))
    ifbs = [removal.ifb for removal in removals if removal.ifb]
    reading = _read(pid)
    deadline = time.monotonic() + PATIENCE_S
    while not all(map(reading.empty, ifbs)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        reading = _read(pid)
    rest = chain.from_iterable(removal.remove for removal in removals)
    _run(pid, sorted(rest, key=_program, reverse=True))  # "tc" lets go of what "ip" takes away
    return reading


def _program(step: Step) -> str:
    return step.program


def _in_each(pids: Iterable[int | None], work: Callable[[int | None], T]) -> dict[int | None, T]:
    """The work done for each namespace, for some at a time: most of it is waiting for programs to start."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return dict(zip(pids, pool.map(work, pids), strict=True))
