"""What an impairment is to the kernel: one of four forms, each with its lines for ``tc`` and ``ip``.

=========  ============================================================================================================
Drop       chosen frames go to an HTB class of their own, whose queue is a blackhole
Divert     chosen frames go through an ifb and come back to the same interface, late or changed
Reshape    the link's class or queue has other numbers
SetDown    the interface is down
=========  ============================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from topo.impairments.bpf import Program
from topo.shaping import LinkSpec


@dataclass(frozen=True, slots=True)
class Place:
    """Where an impairment stands: the sending ``interface``, shaped as ``spec`` says.

    ``salt`` (32 bits) sets its dice apart from those of every other impairment, anywhere; it follows from the seed.
    """

    interface: str
    spec: LinkSpec
    salt: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The ``chosen`` frames vanish."""

    chosen: Program


@dataclass(frozen=True, slots=True)
class Divert:
    """The ``chosen`` frames go through an ifb with the queues that ``queues`` has lines for, given the ifb's name.

    ``primed``: each is preceded by a copy that ends at the ifb (see ``kinds/reorder.py``). ``copies`` leave for each
    that enters. ``counts``: what has been struck is what left (``sent``), or what the ifb's root queue dropped.
    """

    chosen: Program
    queues: Callable[[str], tuple[str, ...]]
    primed: bool = False
    copies: int = 1
    counts: Literal["sent", "drops"] = "sent"


@dataclass(frozen=True, slots=True)
class Reshape:
    """The link is shaped as ``change`` says of what it was."""

    change: Callable[[LinkSpec], LinkSpec]


@dataclass(frozen=True, slots=True)
class SetDown:
    """The interface is down, and so the link, in both directions."""


Form = Drop | Divert | Reshape | SetDown
