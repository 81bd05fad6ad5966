"""The collective algorithms: one module each in this folder, found by walking it.

A module's :class:`Collective` is called ``COLLECTIVE``; its ``name`` is the algorithm's name on the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from endpoints.collectives.elements import ELEMENT_BYTES, Element
from endpoints.collectives.kinds import KINDS, Kind, KindName
from endpoints.core.operation import Operation, Services
from endpoints.core.packets import U8
from endpoints.core.registry import walk
from endpoints.core.schedule import Schedule


class Make(Protocol):
    """Makes one rank's part of an operation."""

    def __call__(self, services: Services, op: int, data: U8, buffer: U8) -> Operation:
        """``data`` is what the rank contributes (empty for none), ``buffer`` what it receives into."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What an algorithm does, whoever carries it out: ``kind`` says what goes in and comes out (``KINDS``)."""

    name: str
    kind: KindName
    summary: str

    @property
    def does(self) -> Kind:
        """What its kind says."""
        return KINDS[self.kind]

    @property
    def granularity(self) -> int:
        """A block is a multiple of so many bytes."""
        return ELEMENT_BYTES if self.does.reduces else 1

    def roots(self, ranks: int) -> int:
        """How many of the ranks contribute."""
        return self.does.roots(ranks)

    def data_bytes(self, ranks: int, size: int) -> int:
        """Bytes that a rank contributes that contributes at all."""
        return self.does.data_blocks(ranks) * size

    def buffer_bytes(self, ranks: int, size: int) -> int:
        """Bytes of every rank's receive buffer."""
        return self.does.buffer_blocks(ranks) * size

    def memory_bytes(self, ranks: int, size: int) -> int:
        """Bytes that a rank needs: what it contributes, as given and as sent, what it receives, and has yet to add."""
        return (3 if self.does.reduces else 2) * self.data_bytes(ranks, size) + self.buffer_bytes(ranks, size)

    def contributes(self, rank: int) -> bool:
        """Whether a rank puts data in."""
        return rank == 0 or not self.does.rooted


@dataclass(frozen=True, slots=True)
class Collective(Algorithm):
    """An algorithm that the endpoints carry out themselves.

    ``multicast`` says that its bytes are those of the trees; ``transfers`` has the schedule of a point-to-point
    algorithm: called with the number of ranks and N, it gives every transfer, from which the bytes of each link follow.
    ``make`` of one that reduces adds elements of ``UINT32``, that of :meth:`adding` others: ``typed`` makes it.
    """

    make: Make
    multicast: bool = False
    transfers: Schedule | None = None
    typed: Callable[[Element], Make] | None = None

    def adding(self, element: Element) -> Collective:
        """The same for such elements; itself where it adds nothing."""
        return self if self.typed is None else replace(self, make=self.typed(element))


class UnknownCollective(ValueError):
    """No algorithm of that name."""


@cache
def collectives() -> dict[str, Collective]:
    """Every algorithm by name, sorted."""
    return walk("endpoints.collectives", "COLLECTIVE", Collective, "collectives")


def collective(name: str) -> Collective:
    """The algorithm called ``name``; :class:`UnknownCollective` names the known ones."""
    known = collectives()
    if name not in known:
        raise UnknownCollective(f"unknown algorithm {name!r}: known are {', '.join(known)}")
    return known[name]
