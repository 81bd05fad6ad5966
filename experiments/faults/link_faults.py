"""Faults of links, carried out by ``topo.impairments`` on what the sending ends send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from experiments.errors import EnvironmentMissing, UserError
from experiments.faults.fault import Fault
from experiments.faults.quantities import link_ends
from topo.fabric import Fabric, interface
from topo.impairments.links import LinkImpairments
from topo.impairments.model import Impairment, ImpairmentError
from topo.impairments.port import Port
from topo.impairments.registry import impairment
from topo.shaping import LinkSpec

NS_PER_US = 1000


def impairment_of(fault: Fault) -> Impairment:
    """The fault as links take it. Bursts are Gilbert and Elliott's: each packet of one is lost, none between them.

    :class:`UserError` for bursts that never end.
    """
    value: dict[str, Any] = dict(fault.values)
    if fault.kind == "loss" and "burst" in value:
        if value["probability"] == 1:
            raise UserError(f"{fault}: where every packet is lost there are no bursts; write blackhole")
        back = 1 / value["burst"]
        return impairment("gemodel", p=min(1.0, back * value["probability"] / (1 - value["probability"])), r=back)
    given = {
        "share": value.get("probability"),
        "by": _us(value.get("by", value.get("time"))),
        "jitter": _us(value.get("jitter")),
        "rate": value.get("rate"),
        "packets": value.get("count"),
        "every": value.get("every"),
        "psn": _ranges(value.get("psn")),
    }
    name = "exact" if fault.kind == "drop" else fault.kind
    return impairment(name, **{key: found for key, found in given.items() if found is not None})


def _us(ns: int | None) -> int | None:
    return None if ns is None else max(1, ns // NS_PER_US)


def _ranges(psns: tuple[int | tuple[int, int], ...] | None) -> tuple[tuple[int, int], ...] | None:
    return None if psns is None else tuple((entry, entry) if isinstance(entry, int) else entry for entry in psns)


def directions(place: str) -> tuple[tuple[str, str], ...]:
    """Sender and receiver of each direction that a link's name means."""
    one, other, single = link_ends(place)
    return ((one, other),) if single else ((one, other), (other, one))


def refusal(fault: Fault, fabric: Fabric, spec: LinkSpec, features: Collection[str]) -> str | None:
    """Why a fault of a link that is shaped as ``spec`` says cannot be carried out with these kernel ``features``.

    None if it can be, and for faults of other things.
    """
    if not is_impairment(fault):
        return None
    try:
        for sender, receiver in directions(fault.place):
            name = interface(sender, fabric.port_to[sender][receiver])
            Port(name, spec, frozenset(features), seed=0).add("", impairment_of(fault))
    except ImpairmentError as problem:
        return str(problem)
    return None


def is_impairment(fault: Fault) -> bool:
    """Whether it is what happens to packets on a link; that it is down is a failure."""
    return fault.target == "link" and fault.kind != "down"


class LinkFaults:
    """A fault of both directions is two impairments, whose counts are told together."""

    name = "link"

    def __init__(self, links: LinkImpairments) -> None:
        self._links = links
        self._parts: dict[int, list[str]] = {}

    def takes(self, fault: Fault) -> bool:
        """Impairments."""
        return is_impairment(fault)

    def apply(self, number: int, fault: Fault) -> None:
        """In force in every direction, or in none."""
        done: list[str] = []
        try:
            for sender, receiver in directions(fault.place):
                name = f"{number}:{sender}->{receiver}"
                self._links.add(name, sender, receiver, impairment_of(fault))
                done.append(name)
        except ImpairmentError as problem:
            self._undo(done)
            raise EnvironmentMissing(f"fault {str(fault)!r}: {problem}") from None
        except BaseException:
            self._undo(done)
            raise
        self._parts[number] = done

    def observe(self, number: int) -> Mapping[str, int]:
        """Frames by what became of them."""
        seen = self._links.observe()
        return _counts([seen[name] for name in self._parts[number]])

    def clear(self, number: int) -> Mapping[str, int]:
        """Frames that are held back come out first."""
        return _counts([self._links.clear(name) for name in self._parts.pop(number)])

    def _undo(self, names: list[str]) -> None:
        for name in names:
            with suppress(ImpairmentError):
                self._links.clear(name)


def _counts(seen: list[Any]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in seen:
        if one.effect != "changed":
            total[one.effect] += one.struck
        if one.lost:
            total["lost"] += one.lost
    return dict(total)
