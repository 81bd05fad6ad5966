"""What stands on one interface, and what to tell the kernel when an impairment comes or goes. Pure.

A :class:`Port` is a value; :meth:`Port.add` and :meth:`Port.remove` return the next one together with the commands
that lead there. None of them touches what belongs to another impairment. Numbers from 0x100 up are the impairments'::

    1:  htb                               the link's shaping
    |- 1:1    the link's class and queue
    `- 1:101  blackhole 101:              one that drops; a filter on 1: leads there
    clsact egress: filter -> ifb h1-eth0+1    one that delays or changes; what it lets go comes back to 1:

Filters are asked in the order of their numbers, those that choose all frames last. A frame that several would divert
is diverted by the first of them alone, as a frame that several would drop is dropped by the first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count
from typing import Literal, NamedTuple

from topo.impairments.bpf import Program
from topo.impairments.forms import Divert, Drop, Form, Place, Reshape, SetDown
from topo.impairments.model import Impairment, ImpairmentError, Mechanism
from topo.impairments.programs import ALL
from topo.impairments.registry import Way, choose
from topo.shaping import LinkSpec, tc_lines

FIRST, LAST_RESORT = 0x100, 0x200
MOST = LAST_RESORT - FIRST
LONGEST_NAME = 15
IFB_QUEUE = 100_000
"""Frames that an ifb holds: more than any link sends in the time."""


class Step(NamedTuple):
    """A line for ``tc -batch`` or ``ip -batch``."""

    program: Literal["tc", "ip"]
    line: str


Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """An impairment at its place. ``slot`` is its number there, from which class, handles and ifb have their names."""

    name: str
    slot: int
    impairment: Impairment
    way: Way
    form: Form
    interface: str
    salt: int

    @property
    def ifb(self) -> str:
        """Of one that diverts."""
        return f"{self.interface}+{self.slot:x}"

    @property
    def number(self) -> int:
        """Of class and queue."""
        return FIRST + self.slot

    @property
    def priority(self) -> int:
        """Of the filter."""
        everything = isinstance(self.form, Drop | Divert) and self.form.chosen == ALL
        return (LAST_RESORT if everything else FIRST) + self.slot


@dataclass(frozen=True, slots=True)
class Removal:
    """How one goes: ``stop`` ends its choosing, then ``ifb``, if any, runs empty and is counted, then the rest goes."""

    placed: Placed
    stop: Steps
    ifb: str | None
    remove: Steps


@dataclass(frozen=True, slots=True)
class Port:
    """The impairments on ``interface``, which is shaped as ``spec`` says; ``features`` are the kernel's."""

    interface: str
    spec: LinkSpec
    features: frozenset[str]
    seed: int
    placed: tuple[Placed, ...] = ()

    def add(self, name: str, impairment: Impairment, mechanism: Mechanism | None = None) -> tuple[Port, Steps]:
        """With one more, called ``name``; ImpairmentError for a name in use and for what cannot be done here."""
        if any(placed.name == name for placed in self.placed):
            raise ImpairmentError(f"{name}: there is an impairment of that name on {self.interface}")
        way = choose(impairment, self.features, mechanism)
        salt = self._salt(impairment)
        form = way.form(impairment, Place(self.interface, self.spec, salt))
        slots = {placed.slot for placed in self.placed}
        slot = min(set(range(MOST)) - slots, default=None)
        if slot is None:
            raise ImpairmentError(f"{name}: {self.interface} has {MOST} impairments, more cannot be")
        new = Placed(name, slot, impairment, way, form, self.interface, salt)
        port = replace(self, placed=(*self.placed, new))
        if isinstance(form, Drop):
            return port, _drop_steps(new, form)
        if isinstance(form, Divert):
            if len(new.ifb) > LONGEST_NAME:
                raise ImpairmentError(f"{impairment.kind}: the name of {self.interface} is too long for an ifb's")
            clsact = () if self.diverts else (Step("tc", f"qdisc add dev {self.interface} clsact"),)
            return port, (*_ifb_steps(new, form), *clsact, _divert_step(new, form))
        if isinstance(form, SetDown):
            return port, (Step("ip", f"link set dev {self.interface} down"),)
        return port, port.shaping_steps()

    def remove(self, name: str) -> tuple[Port, Removal]:
        """Without that one; ImpairmentError if there is none."""
        gone = next((placed for placed in self.placed if placed.name == name), None)
        if gone is None:
            raise ImpairmentError(f"{name}: there is no impairment of that name on {self.interface}")
        port = replace(self, placed=tuple(placed for placed in self.placed if placed is not gone))
        dev = self.interface
        if isinstance(gone.form, Drop):
            stop = (Step("tc", f"filter del dev {dev} parent 1: protocol all prio {gone.priority} bpf"),)
            return port, Removal(gone, stop, None, (Step("tc", f"class del dev {dev} classid 1:{gone.number:x}"),))
        if isinstance(gone.form, Divert):
            stop = (Step("tc", f"filter del dev {dev} egress protocol all prio {gone.priority} bpf"),)
            clsact = () if port.diverts else (Step("tc", f"qdisc del dev {dev} clsact"),)
            return port, Removal(gone, stop, gone.ifb, (*clsact, Step("ip", f"link del dev {gone.ifb}")))
        if isinstance(gone.form, SetDown):
            still = any(isinstance(placed.form, SetDown) for placed in port.placed)
            up = () if still else (Step("ip", f"link set dev {dev} up"),)
            return port, Removal(gone, up, None, ())
        return port, Removal(gone, port.shaping_steps(), None, ())

    @property
    def diverts(self) -> bool:
        """Whether one of them needs clsact."""
        return any(isinstance(placed.form, Divert) for placed in self.placed)

    def _salt(self, impairment: Impairment) -> int:
        """Follows from seed, place and kind; two of a kind that stand here at a time have different ones."""
        taken = {placed.salt for placed in self.placed}
        texts = (f"{self.seed} {self.interface} {impairment.kind} {ordinal}" for ordinal in count())
        salts = (int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") for text in texts)
        return next(salt for salt in salts if salt not in taken)

    def shaping_steps(self) -> Steps:
        """The link's class and queue as those that change them want it."""
        spec = self.spec
        for placed in self.placed:
            if isinstance(placed.form, Reshape):
                spec = placed.form.change(spec)
        _, *rest = tc_lines(self.interface, spec)
        return tuple(Step("tc", line.replace(" add ", " change ", 1)) for line in rest)


def _drop_steps(new: Placed, form: Drop) -> Steps:
    dev, number = new.interface, f"{new.number:x}"
    choosing = f"protocol all prio {new.priority} {_chooser(form.chosen)}"
    return tuple(
        Step("tc", line)
        for line in (
            f"class add dev {dev} parent 1: classid 1:{number} htb rate 1gbit quantum 1500",
            f"qdisc add dev {dev} parent 1:{number} handle {number}: blackhole",
            f"filter add dev {dev} parent 1: {choosing} flowid 1:{number}",
        )
    )


def _ifb_steps(new: Placed, form: Divert) -> Steps:
    return (
        Step("ip", f"link add name {new.ifb} txqueuelen {IFB_QUEUE} type ifb"),
        Step("ip", f"link set dev {new.ifb} up"),
        *(Step("tc", line) for line in form.queues(new.ifb)),
    )


def _divert_step(new: Placed, form: Divert) -> Step:
    primer = f"action mirred egress mirror dev {new.ifb} pipe " if form.primed else ""
    return Step(
        "tc",
        f"filter add dev {new.interface} egress protocol all prio {new.priority}"
        f" {_chooser(form.chosen)} {primer}action mirred egress redirect dev {new.ifb}",
    )


def _chooser(program: Program) -> str:
    return f"bpf bytecode '{program.bytecode}'"


def features_of(found: Collection[tuple[str, bool | None]]) -> frozenset[str]:
    """The features that are there, of ``topo.platform.Platform.features.items()``."""
    return frozenset(name for name, there in found if there)
