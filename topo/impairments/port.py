"""What stands on one interface, and what to tell the kernel when an impairment comes or goes. Pure.

A :class:`Port` is a value; :meth:`Port.add` and :meth:`Port.remove` return the next one together with the
commands that lead there. None of them touches what belongs to another impairment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from topo.impairments.forms import Form
from topo.impairments.model import Impairment, Mechanism
from topo.impairments.registry import Way
from topo.shaping import LinkSpec


class Step(NamedTuple):
    """A line for ``tc -batch`` or ``ip -batch``."""

    program: Literal["tc", "ip"]
    line: str


@dataclass(frozen=True, slots=True)
class Placed:
    """An impairment at its place. ``slot`` is its number there, from which class, handles and ifb have their names."""

    name: str
    slot: int
    impairment: Impairment
    way: Way
    form: Form


@dataclass(frozen=True, slots=True)
class Removal:
    """How one goes: ``stop`` ends its choosing; when ``ifb``, if any, is empty, it is counted; ``remove`` the rest."""

    stop: tuple[Step, ...]
    ifb: str | None
    remove: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """The impairments on ``interface``, which is shaped as ``spec`` says; ``features`` are the kernel's."""

    interface: str
    spec: LinkSpec
    features: frozenset[str]
    seed: int
    placed: tuple[Placed, ...] = ()

    def add(
        self, name: str, impairment: Impairment, mechanism: Mechanism | None = None
    ) -> tuple[Port, tuple[Step, ...]]:
        """With one more, called ``name``; ImpairmentError for a name in use and for what cannot be done here."""
        raise NotImplementedError

    def remove(self, name: str) -> tuple[Port, Removal]:
        """Without that one."""
        raise NotImplementedError


def features_of(found: Collection[tuple[str, bool | None]]) -> frozenset[str]:
    """The features that are there, of ``topo.platform.Platform.features.items()``."""
    return frozenset(name for name, there in found if there)
