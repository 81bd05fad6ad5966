"""Every algorithm that a scenario may name: the endpoints' own collectives, and external programs' beside them."""

from __future__ import annotations

from functools import cache

from endpoints.collectives.registry import Collective, UnknownCollective, collectives
from experiments.external.registry import External, externals


@cache
def algorithms() -> dict[str, Collective | External]:
    """All by name: the endpoints' own first, each kind sorted."""
    ours, theirs = collectives(), externals()
    if both := ours.keys() & theirs.keys():
        raise RuntimeError(f"two algorithms are called {min(both)!r}")
    return {**ours, **theirs}


def algorithm(name: str) -> Collective | External:
    """The algorithm called ``name``; :class:`UnknownCollective` names the known ones."""
    known = algorithms()
    if name not in known:
        raise UnknownCollective(f"unknown algorithm {name!r}: known are {', '.join(known)}")
    return known[name]
