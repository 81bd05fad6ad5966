"""What stands in a fault's words for a name or a number: how each is read, checked against a fabric, and told.

Whatever is told is read back as the same value, and the words of a value that was read in its usual form are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from endpoints.core.packets import Opcode
from endpoints.impairments.spec import PsnRange, bounds, parse_psns
from experiments import units
from experiments.errors import UserError
from topo.fabric import Fabric, FabricError

Value = float | int | str | tuple[PsnRange, ...] | tuple[str, ...]

ARROW = "->"
PARTS = ("application", "nic", "worker")
"""Of the endpoint of a host with a NIC."""
EVERYWHERE = "*"
"""Every link of the fabric, in both directions."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """``read`` raises :class:`UserError` for what is none. ``names`` lists all of a fabric, where there is a list."""

    example: str
    read: Callable[[str, Fabric], Value]
    tell: Callable[[Value], str] = str
    names: Callable[[Fabric], Iterable[str]] = lambda _: ()


def link_ends(place: str) -> tuple[str, str, bool]:
    """The two nodes of a link's name, and whether one direction alone is meant: ``a->b`` is what ``a`` sends."""
    one, arrow, other = place.partition(ARROW)
    if not arrow:
        one, _, other = place.partition("-")
    return one, other, bool(arrow)


def directions(place: str, fabric: Fabric) -> tuple[tuple[str, str], ...]:
    """Sender and receiver of each direction that a link's name means."""
    if place == EVERYWHERE:
        return tuple((node, peer) for node, _, peer in fabric.directed_links)
    one, other, single = link_ends(place)
    return ((one, other),) if single else ((one, other), (other, one))


def _link(text: str, fabric: Fabric) -> str:
    return text if text == EVERYWHERE else _one_link(text, fabric)


def _one_link(text: str, fabric: Fabric) -> str:
    one, other, _ = link_ends(text)
    try:
        fabric.link_between(one, other)
    except FabricError as problem:
        raise UserError(str(problem)) from None
    return text


def _wire(text: str, fabric: Fabric) -> str:
    if link_ends(text)[2]:
        raise UserError(f"{text!r}: this goes for both directions of a link, written with a dash")
    return _one_link(text, fabric)


def _wire_names(fabric: Fabric) -> list[str]:
    return [f"{node}-{peer}" for node, _, peer in fabric.directed_links]


def _link_names(fabric: Fabric) -> list[str]:
    arrows = (f"{node}{ARROW}{peer}" for node, _, peer in fabric.directed_links)
    return [*_wire_names(fabric), *arrows, EVERYWHERE]


def _one_of(kind: str, names: Callable[[Fabric], Iterable[str]], text: str, fabric: Fabric) -> str:
    if text not in names(fabric):
        raise UserError(f"no {kind} {text!r} in {fabric.topology}")
    return text


def _hosts(fabric: Fabric) -> Iterable[str]:
    return fabric.host


def _switches(fabric: Fabric) -> Iterable[str]:
    return fabric.switch


def _some_hosts(text: str, fabric: Fabric) -> tuple[str, ...]:
    return tuple(_one_of("host", _hosts, name, fabric) for name in text.split(","))


def _probability(text: str, _: Fabric) -> float:
    share = units.parse_probability(text)
    if share == 0:
        raise UserError(f"probability {text!r}: must be above 0%")
    return share


def _time(text: str, _: Fabric) -> int:
    time = units.parse_time(text)
    if time == 0:
        raise UserError(f"time {text!r}: must be above 0")
    return time


def _count(text: str, _: Fabric) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) == 0:
        raise UserError(f"number {text!r}: write a whole number above 0")
    return int(text)


def _psns(text: str, _: Fabric) -> tuple[PsnRange, ...]:
    try:
        return parse_psns(text)
    except ValueError as problem:
        raise UserError(str(problem)) from None


def _opcode_name(opcode: Opcode) -> str:
    return opcode.name.lower().replace("_", "-")


_OPCODES = {_opcode_name(opcode): int(opcode) for opcode in Opcode}


def _opcodes(text: str, _: Fabric) -> tuple[int, ...]:
    for name in text.split(","):
        if name not in _OPCODES:
            raise UserError(f"opcode {name!r}: known are {', '.join(_OPCODES)}")
    return tuple(_OPCODES[name] for name in text.split(","))


def tell_time(value: Value) -> str:
    """A time in one word: ``1.5s``."""
    assert isinstance(value, int)
    return units.format_time(value).replace(" ", "")


def _tell_probability(value: Value) -> str:
    assert isinstance(value, float)
    return units.format_probability(value)


def _tell_rate(value: Value) -> str:
    """In Mbit/s without a unit, which is the usual form, where that is the unit one would choose."""
    assert isinstance(value, int)
    return units.format_rate(value).removesuffix(" Mbit/s").replace(" ", "")


def _tell_psns(value: Value) -> str:
    assert isinstance(value, tuple)
    return ",".join(_tell_range(entry) for entry in value if not isinstance(entry, str))


def _tell_range(entry: PsnRange) -> str:
    return str(entry) if isinstance(entry, int) else "-".join(map(str, bounds(entry)))


def _tell_opcodes(value: Value) -> str:
    assert isinstance(value, tuple)
    return ",".join(_opcode_name(Opcode(entry)) for entry in value if isinstance(entry, int))


def _tell_words(value: Value) -> str:
    assert isinstance(value, tuple)
    return ",".join(map(str, value))


_A_LINK = "a link like e00-a00 (one direction: e00->a00; every link: *)"

QUANTITIES = {
    "LINK": Quantity(_A_LINK, _link, names=_link_names),
    "WIRE": Quantity(_A_LINK, _wire, names=_wire_names),
    "SWITCH": Quantity("a switch like a10", partial(_one_of, "switch", _switches), names=_switches),
    "HOST": Quantity("a host like h3", partial(_one_of, "host", _hosts), names=_hosts),
    "HOSTS": Quantity("hosts like h1,h4", _some_hosts, _tell_words, names=_hosts),
    "PROBABILITY": Quantity("a percentage like 2%", _probability, _tell_probability),
    "TIME": Quantity("a time like 5ms or 3s", _time, tell_time),
    "RATE": Quantity("a rate like 10 (Mbit/s) or 500kbit", lambda text, _: units.parse_rate(text), _tell_rate),
    "COUNT": Quantity("a number like 100", _count),
    "PSNS": Quantity("PSNs like 17,40-60", _psns, _tell_psns),
    "PART": Quantity(
        "application, nic or worker", partial(_one_of, "part of a host", lambda _: PARTS), names=lambda _: PARTS
    ),
    "OPCODES": Quantity("opcodes like rc-acknowledge,rc-read-request", _opcodes, _tell_opcodes, lambda _: _OPCODES),
}
"""By the word in capitals that stands for it in a form."""
