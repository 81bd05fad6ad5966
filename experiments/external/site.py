"""What an external program is handed, and what it hands back: the words between it and a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class ProgramFailed(Exception):
    """The program did not start, ended unasked, took too long or said something else than was expected; in one line."""


@dataclass(frozen=True, slots=True)
class Place:
    """An emulated host, as a program started there sees it; ``pid`` is of a process whose namespaces are the host's."""

    name: str
    ip: str
    interface: str
    pid: int


@dataclass(frozen=True, slots=True)
class Site:
    """The hosts in rank order, on links of ``rate_bps`` that carry IP packets of ``mtu`` bytes.

    ``folder`` is in memory and the program's alone; what it says goes to the file ``log``. ``look`` is called now and
    then while the program is waited for, and raises where the fabric itself has failed.
    """

    places: tuple[Place, ...]
    rate_bps: int
    mtu: int
    folder: Path
    log: Path
    look: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One operation, by the program's own clock: ``seconds`` of the slowest rank, without start-up.

    ``cpu_seconds`` are those of the hosts' processes; ``extra_seconds`` are other times that the program tells.
    """

    seconds: float
    cpu_seconds: float
    extra_seconds: dict[str, float] = field(default_factory=dict)


class Program(Protocol):
    """A program that is ready on every host."""

    def run(self, data: Sequence[Path], received: Sequence[Path], timeout_s: float) -> Measured:
        """One operation: files in rank order with what each rank contributes, and those that it receives into.

        Raises :class:`ProgramFailed`.
        """
