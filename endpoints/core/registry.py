"""A registry that is a folder: what each module of it calls by an agreed name is an entry, found by walking it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeVar


class Named(Protocol):
    """An entry."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


def walk(package: str, attribute: str, kind: type[Entry], plural: str) -> dict[str, Entry]:
    """Every ``attribute`` of the modules of ``package``, sorted by name; ``plural`` is what a complaint calls them.

    A module without one is no entry, and packages are passed by. RuntimeError for two entries of the same name,
    TypeError for one that is no ``kind``.
    """
    found: dict[str, Entry] = {}
    for info in iter_modules(import_module(package).__path__):
        entry = None if info.ispkg else getattr(import_module(f"{package}.{info.name}"), attribute, None)
        if entry is None:
            continue
        if not isinstance(entry, kind):
            raise TypeError(f"{package}.{info.name}: {attribute} is no {kind.__name__}")
        if entry.name in found:
            raise RuntimeError(f"two {plural} are called {entry.name!r}")
        found[entry.name] = entry
    return dict(sorted(found.items()))
