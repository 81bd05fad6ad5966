"""The impairments that exist: every module of this folder that holds an :class:`Impairment` called ``IMPAIRMENT``.

To add one, write one file::

    def _strike(blow: Blow) -> None:
        blow.fates.copies[blow.hit] = 0

    IMPAIRMENT = Impairment("drop", "the packet is lost", _strike)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from endpoints.core.registry import walk
from endpoints.impairments.fates import U64, Bool, Fates
from endpoints.impairments.spec import ImpairmentSpec


@dataclass(frozen=True, slots=True)
class Blow:
    """One impairment striking a batch: ``hit``, shape (n,), says which packets; their ``fates`` are to be written.

    ``rolls``, shape (n,), is a 64-bit number of each packet's own, the same in every run with the same seed, for
    whatever else must be drawn.
    """

    fates: Fates
    hit: Bool
    rolls: U64
    spec: ImpairmentSpec


@dataclass(frozen=True, slots=True)
class Impairment:
    """A kind of fault. ``default_time_ns`` is how long it holds packets back unless told, None if it does not."""

    name: str
    summary: str
    strike: Callable[[Blow], None]
    default_time_ns: int | None = None
    counts_packets: bool = False


class UnknownImpairment(ValueError):
    """No impairment of that name."""


@cache
def impairments() -> dict[str, Impairment]:
    """Every impairment by name, sorted."""
    return walk("endpoints.impairments", "IMPAIRMENT", Impairment, "impairments")


def impairment(name: str) -> Impairment:
    """The impairment called ``name``; :class:`UnknownImpairment` names the known ones."""
    known = impairments()
    if name not in known:
        raise UnknownImpairment(f"unknown impairment {name!r}: known are {', '.join(known)}")
    return known[name]


def check(spec: ImpairmentSpec) -> Impairment:
    """The impairment that ``spec`` asks for; ValueError if there is none or it does not take what is asked."""
    entry = impairment(spec.kind)
    if spec.time_ns is not None and entry.default_time_ns is None:
        raise ValueError(f"{spec.kind}: time_ns {spec.time_ns}: it takes no time")
    if spec.packets is not None and not entry.counts_packets:
        raise ValueError(f"{spec.kind}: packets {spec.packets}: it does not count packets")
    return entry
