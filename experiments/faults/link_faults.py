"""Faults of links, carried out by ``topo.impairments`` on what the sending ends send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from experiments.errors import EnvironmentMissing, UserError
from experiments.faults.fault import Fault
from experiments.faults.quantities import directions
from topo.fabric import Fabric, interface
from topo.impairments.links import LinkImpairments
from topo.impairments.model import Impairment, ImpairmentError, Observed
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
        "opcode": _ranges(value.get("opcode")),
    }
    name = "exact" if fault.kind == "drop" else fault.kind
    return impairment(name, **{key: found for key, found in given.items() if found is not None})


def _us(ns: int | None) -> int | None:
    return None if ns is None else max(1, ns // NS_PER_US)


def _ranges(listed: tuple[int | tuple[int, int], ...] | None) -> tuple[tuple[int, int], ...] | None:
    return None if listed is None else tuple((entry, entry) if isinstance(entry, int) else entry for entry in listed)


def refusal(fault: Fault, fabric: Fabric, spec: LinkSpec, features: Collection[str]) -> str | None:
    """Why a fault of a link that is shaped as ``spec`` says cannot be carried out with these kernel ``features``.

    None if it can be, and for faults of other things.
    """
    if not is_impairment(fault):
        return None
    try:
        for sender, receiver in directions(fault.place, fabric):
            name = interface(sender, fabric.port_to[sender][receiver])
            Port(name, spec, frozenset(features), seed=0).add("", impairment_of(fault))
    except ImpairmentError as problem:
        return str(problem)
    return None


def is_impairment(fault: Fault) -> bool:
    """Whether it is what happens to packets on a link; that it is down is a failure."""
    return fault.target == "link" and fault.kind != "down"


class LinkFaults:
    """A fault is an impairment of each of its directions, whose counts are told together."""

    name = "link"

    def __init__(self, links: LinkImpairments, fabric: Fabric) -> None:
        self._links = links
        self._fabric = fabric
        self._parts: dict[int, list[str]] = {}

    def takes(self, fault: Fault) -> bool:
        """Impairments."""
        return is_impairment(fault)

    def apply(self, number: int, fault: Fault) -> None:
        """In force in every direction, or in none."""
        ways = {f"{number}:{one}->{other}": (one, other) for one, other in directions(fault.place, self._fabric)}
        try:
            self._links.add_all(ways, impairment_of(fault))
        except ImpairmentError as problem:
            raise EnvironmentMissing(f"fault {str(fault)!r}: {problem}") from None
        self._parts[number] = list(ways)

    def observe(self, number: int) -> Mapping[str, int]:
        """Frames by what became of them."""
        seen = self._links.observe()
        return counts([seen[name] for name in self._parts[number]])

    def clear(self, number: int) -> Mapping[str, int]:
        """Frames that are held back come out first."""
        return counts(self._links.clear_all(self._parts.pop(number)).values())


def counts(seen: Iterable[Observed]) -> dict[str, int]:
    """Packets that came by, and those of them that something became of, by what that was."""
    total: Counter[str] = Counter()
    for one in seen:
        if one.effect != "changed":
            total["packets"] += one.packets
            total[one.effect] += one.struck
        if one.lost:
            total["lost"] += one.lost
    return dict(total)
