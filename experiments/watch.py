"""What is looked at around every operation, whoever carries it out: all ports, and how the machine keeps up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from experiments.fidelity.sampler import Sampler
from experiments.fidelity.samples import Watched
from experiments.movement.port_reader import PortReader
from experiments.movement.port_traffic import Moved, moved
from topo.fabric import Fabric

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one operation: what moved over the links, and what was watched meanwhile."""

    moved: Moved
    watched: Watched


class Watch:
    """See the module. The ``sampler`` has to be told to look while an operation is on."""

    def __init__(self, fabric: Fabric, ports: PortReader, sampler: Sampler) -> None:
        self._fabric = fabric
        self._ports = ports
        self._sampler = sampler

    def over(self, operation: Callable[[], _T]) -> tuple[_T, Seen]:
        """Do ``operation``; its result, and what was seen of it."""
        before = self._ports.read()
        self._sampler.begin()
        result = operation()
        watched = self._sampler.end()
        return result, Seen(moved(self._fabric, before, self._ports.read()), watched)
