"""The collective algorithms: one module each in this folder, found by walking it.

A module's :class:`Collective` is called ``COLLECTIVE``; its ``name`` is the algorithm's name on the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

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
    """What an algorithm does, whoever carries it out: ``kind`` says what goes in and comes out.

    - ``allgather``: every rank gives N bytes and receives P * N, in rank order;
    - ``broadcast``: rank 0 gives N bytes and every rank receives them.
    """

    name: str
    kind: Literal["allgather", "broadcast"]
    summary: str

    def roots(self, ranks: int) -> int:
        """How many of the ranks contribute a block, each of the size that all receive."""
        return ranks if self.kind == "allgather" else 1

    def buffer_bytes(self, ranks: int, size: int) -> int:
        """Bytes of every rank's receive buffer."""
        return self.roots(ranks) * size

    def contributes(self, rank: int) -> bool:
        """Whether a rank puts data in."""
        return self.kind == "allgather" or rank == 0


@dataclass(frozen=True, slots=True)
class Collective(Algorithm):
    """An algorithm that the endpoints carry out themselves.

    ``multicast`` says that its bytes are those of the trees; ``transfers`` has the schedule of a point-to-point
    algorithm: called with the number of ranks and N, it gives every transfer, from which the bytes of each link follow.
    """

    make: Make
    multicast: bool = False
    transfers: Schedule | None = None


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
