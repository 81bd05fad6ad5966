"""Faults that come and go while an endpoint runs: asked for over a pipe of their own, between two batches of packets.

The asker sends the whole list of live faults of this endpoint (:class:`LiveFaults`), and is told what each has done so
far (:class:`Tallies`); sending the same list again only asks. An endpoint without any pays for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal

from endpoints.impairments.impairer import Impairer, Tally
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.station import Station

Way = Literal["rx", "tx"]


@dataclass(frozen=True, slots=True)
class LiveFaults:
    """All live faults of one endpoint by their numbers; ``serial`` comes back with the answer."""

    serial: int
    specs: Mapping[int, ImpairmentSpec]


@dataclass(frozen=True, slots=True)
class Tallies:
    """What live faults have done since they were put in, those included that the question took out."""

    serial: int
    tallies: Mapping[int, Tally]


class Control:
    """The endpoint's end of the pipe. The ``impairers`` of both directions are given, in use or not."""

    def __init__(self, pipe: Connection, impairers: Mapping[Way, Impairer], station: Station) -> None:
        self._pipe = pipe
        self._impairers = impairers
        self._station = station

    def fileno(self) -> int:
        """For poll."""
        return self._pipe.fileno()

    def tend(self) -> None:
        """Do what the pipe, which is readable, asks for; EOFError if the asker has gone."""
        wanted: LiveFaults = self._pipe.recv()
        tallies: dict[int, Tally] = {}
        for way, impairer in self._impairers.items():
            tallies |= impairer.set_live({n: spec for n, spec in wanted.specs.items() if spec.direction == way})
        self.put_in_place()
        self._pipe.send(Tallies(wanted.serial, tallies))

    def put_in_place(self) -> None:
        """Have packets pass the impairers that have something to do, and no others."""
        rx, tx = (None if impairer.idle else impairer for impairer in (self._impairers["rx"], self._impairers["tx"]))
        self._station.impair(rx, tx)
