"""The topologies that exist: every module of ``topo/fabrics`` that holds a function decorated with ``@topology``.

To add one, write one file::

    @topology("ring")
    def ring(switches: int = 4) -> Fabric:
        \"\"\"A ring of switches (3 to 100) with one host each.\"\"\"
        ...

Its parameters are integers with defaults. It is then known to :func:`parse_topology`, to ``treecast --topo`` and to
``mn --custom topo/mn.py``, and the conformance tests walk it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType

import topo.fabrics
from topo.fabric import Fabric, FabricError


@dataclass(frozen=True, slots=True)
class Topology:
    """A kind of fabric. ``parameters`` maps each parameter to its default; ``summary`` is one line of help."""

    name: str
    make: Callable[..., Fabric]
    parameters: Mapping[str, int]
    summary: str

    def __call__(self, **params: int) -> Fabric:
        """The fabric for ``params``; what is not given has its default."""
        return self.make(**params)


def topology(name: str) -> Callable[[Callable[..., Fabric]], Topology]:
    """Decorator: the function is the topology ``name``. Its signature gives the parameters, its docstring the help."""

    def wrap(make: Callable[..., Fabric]) -> Topology:
        defaults = {p.name: p.default for p in inspect.signature(make).parameters.values()}
        for parameter, default in defaults.items():
            if not isinstance(default, int):
                raise TypeError(f"topology {name}: parameter {parameter} needs an integer default")
        summary = (make.__doc__ or "").strip().partition("\n")[0]
        return Topology(name, make, MappingProxyType(defaults), summary)

    return wrap


def discover(package: ModuleType) -> dict[str, Topology]:
    """All topologies in the modules of ``package``, by name; a name that two modules claim is a FabricError."""
    found: dict[str, Topology] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        own = [
            value
            for value in vars(module).values()
            if isinstance(value, Topology) and value.make.__module__ == module.__name__
        ]
        for entry in own:
            if entry.name in found:
                first = found[entry.name].make.__module__
                raise FabricError(f"topology {entry.name} is defined twice: in {first} and in {module.__name__}")
            found[entry.name] = entry
    return dict(sorted(found.items()))


@cache
def topologies() -> Mapping[str, Topology]:
    """The topologies of ``topo/fabrics``, by name in alphabetical order."""
    return MappingProxyType(discover(topo.fabrics))


def parse_topology(text: str) -> Fabric:
    """The fabric that ``text`` asks for, written as Mininet writes it: ``fattree`` or ``leafspine,leaves=2,hosts=8``.

    Raises FabricError, with one line that says what would be right, for an unknown topology or parameter, a value
    that is no integer, and whatever the topology itself refuses.
    """
    name, *assignments = (part.strip() for part in text.split(","))
    entry = topologies().get(name)
    if entry is None:
        raise FabricError(f"unknown topology {name!r}: known are {', '.join(topologies())}")
    params: dict[str, int] = {}
    for assignment in assignments:
        key, value = _assignment(entry, assignment)
        if key in params:
            raise FabricError(f"{name}: parameter {key} is given twice in {text!r}")
        params[key] = value
    return entry(**params)


def _assignment(entry: Topology, text: str) -> tuple[str, int]:
    """``key=value`` of one of the topology's own parameters."""
    key, equals, value = (part.strip() for part in text.partition("="))
    allowed = ", ".join(f"{name}={default}" for name, default in entry.parameters.items())
    if not equals:
        raise FabricError(f"{entry.name}: {text!r} is not of the form parameter=value (defaults: {allowed})")
    if key not in entry.parameters:
        raise FabricError(f"{entry.name}: unknown parameter {key!r}, it has (with defaults) {allowed}")
    try:
        return key, int(value)
    except ValueError:
        raise FabricError(
            f"{entry.name}: {key}={value!r} is not an integer (default {entry.parameters[key]})"
        ) from None
