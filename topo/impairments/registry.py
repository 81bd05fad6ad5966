"""The kinds of impairment that exist: every module of ``topo/impairments/kinds`` that holds a ``KIND``.

To add one, write one file: its parameters, and for each mechanism that can do it a function from the impairment to a
:mod:`topo.impairments.forms` value. It is then a word of the console and of scenarios, and the conformance tests walk
it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from topo.impairments import kinds as folder
from topo.impairments.forms import Form, Place
from topo.impairments.model import Effect, Impairment, ImpairmentError, Mechanism, Value
from topo.impairments.parameters import Parameter

SHAPING = frozenset({"htb"})
CHOOSING = SHAPING | {"bpf"}
DIVERTING = CHOOSING | {"clsact", "ifb"}
NETEM = DIVERTING | {"netem"}
"""What the ways of doing it need."""


@dataclass(frozen=True, slots=True)
class Way:
    """How one mechanism does it. ``needs`` are kernel features as :data:`topo.platform.FEATURES` calls them.

    ``form`` raises :class:`ImpairmentError` for what this mechanism cannot do. ``seeded`` as in ``Observed``.
    """

    mechanism: Mechanism
    needs: frozenset[str]
    form: Callable[[Impairment, Place], Form]
    seeded: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of impairment. ``ways`` come in order of preference; ``cure`` is what to use where none is possible."""

    name: str
    summary: str
    effect: Effect
    parameters: tuple[Parameter, ...]
    ways: tuple[Way, ...]
    check: Callable[[Mapping[str, Value | None]], None] = lambda _: None
    cure: str = ""


@cache
def kinds() -> Mapping[str, Kind]:
    """Every kind by name, sorted. RuntimeError for two of one name."""
    found: dict[str, Kind] = {}
    for info in pkgutil.iter_modules(folder.__path__):
        entry = getattr(importlib.import_module(f"{folder.__name__}.{info.name}"), "KIND", None)
        if not isinstance(entry, Kind):
            continue
        if entry.name in found:
            raise RuntimeError(f"two impairments are called {entry.name!r}")
        found[entry.name] = entry
    return MappingProxyType(dict(sorted(found.items())))


def kind(name: str) -> Kind:
    """The kind called ``name``; :class:`ImpairmentError` names the known ones."""
    if name not in kinds():
        raise ImpairmentError(f"unknown impairment {name!r}: known are {', '.join(kinds())}")
    return kinds()[name]


def impairment(name: str, **given: Value) -> Impairment:
    """The impairment of kind ``name`` with these parameters, in the units of :class:`Impairment`.

    Raises :class:`ImpairmentError` in one line for whatever is unknown, missing, or out of its range.
    """
    entry = kind(name)
    known = {parameter.name: parameter for parameter in entry.parameters}
    for key in given:
        if key not in known:
            raise ImpairmentError(f"{name}: unknown parameter {key!r}: it has {', '.join(known) or 'none'}")
    values: dict[str, Value | None] = {}
    for key, parameter in known.items():
        if key not in given and parameter.required:
            raise ImpairmentError(f"{name}: {key} is missing ({parameter.help})")
        values[key] = parameter.checked(name, given[key]) if key in given else parameter.default
    entry.check(values)
    text = " ".join([name, *(f"{key} {known[key].written(value)}" for key, value in given.items())])
    return Impairment(name, MappingProxyType(values), text)


def parse(name: str, words: Sequence[str]) -> Impairment:
    """The impairment that a person writes: ``loss 2%``, ``reorder 10% by 5ms``, ``exact psn 17,40-60``.

    A parameter's name is followed by its value; a value alone goes to the first parameter that has none yet.
    """
    entry = kind(name)
    known = {parameter.name: parameter for parameter in entry.parameters}
    given: dict[str, Value] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in known:
            if not rest:
                raise ImpairmentError(f"{name}: {word} needs a value ({known[word].help})")
            key, text = word, rest.pop(0)
        else:
            key, text = next((key for key in known if key not in given), ""), word
        if not key:
            raise ImpairmentError(f"{name}: {word!r} is too much: it has {', '.join(known) or 'no parameters'}")
        if key in given:
            raise ImpairmentError(f"{name}: {key} is given twice")
        given[key] = known[key].parsed(name, text)
    return impairment(name, **given)


def choose(impairment: Impairment, features: Collection[str], mechanism: Mechanism | None = None) -> Way:
    """The best way to do it with these kernel ``features``, or that of ``mechanism``.

    :class:`ImpairmentError` if there is none: it names the kind, what is missing, and the cure.
    """
    entry = kind(impairment.kind)
    ways = [way for way in entry.ways if mechanism in {None, way.mechanism}]
    if not ways:
        able = ", ".join(way.mechanism for way in entry.ways)
        raise ImpairmentError(f"{entry.name}: {mechanism} cannot do it: {able} can")
    for way in ways:
        if way.needs <= set(features):
            return way
    missing = " nor ".join(" and ".join(sorted(way.needs - set(features))) for way in ways)
    neither = "neither" if len(ways) > 1 else "no"
    cure = f": {entry.cure}" if entry.cure else ""
    raise ImpairmentError(f"{entry.name}: this kernel has {neither} {missing}{cure}")
