"""Programs of others that do the same job: one module each in this folder, found by walking it.

A module's :class:`External` is called ``EXTERNAL``; its ``name`` is used wherever an algorithm's name is. They are
measured on the same fabric and judged by the same comparison of every byte, and none is needed: one that is not
installed is left out, and the results say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache

from endpoints.collectives.registry import Algorithm
from endpoints.core.registry import walk
from experiments.external.site import Program, Site
from experiments.movement.bounds import Bound
from topo.platform import Missing


@dataclass(frozen=True, slots=True)
class External(Algorithm):
    """An algorithm that somebody else's program carries out.

    ``start`` has it ready on every host for as long as the context lasts; ``needs`` names what :mod:`topo.platform`
    must have found; ``bound`` is what it must move at the least, where that can be said.
    """

    start: Callable[[Site], AbstractContextManager[Program]]
    needs: tuple[str, ...]
    multicast: bool = False
    bound: Bound | None = None

    def lacks(self, missing: Iterable[Missing]) -> str | None:
        """Why it cannot run where ``missing`` is missing, and the cure; None if it can."""
        packages = dict.fromkeys(entry.package for entry in missing if entry.what in self.needs)
        if not packages:
            return None
        verb = "is" if len(packages) == 1 else "are"
        return f"{' and '.join(packages)} {verb} not installed: apt-get install {' '.join(packages)}"


@cache
def externals() -> dict[str, External]:
    """Every external algorithm by name, sorted."""
    return walk("experiments.external", "EXTERNAL", External, "external algorithms")
