"""Faults that are put into an endpoint while it runs, asked for over a pipe."""

from __future__ import annotations

from multiprocessing import Pipe

import pytest

from endpoints.impairments.impairer import Impairer, Tally
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.live_faults import Control, LiveFaults, Tallies


class Recorder:
    """Stands for a station: which impairments it was given last."""

    def __init__(self) -> None:
        self.has: tuple[object, object] = (None, None)

    def impair(self, rx: object, tx: object) -> None:
        self.has = rx, tx


def test_faults_are_put_in_and_taken_out_in_their_direction_alone_and_what_they_did_is_answered() -> None:
    asker, asked = Pipe()
    rx, tx = (Impairer((), 1, 0, way, {}) for way in ("rx", "tx"))
    station = Recorder()
    control = Control(asked, {"rx": rx, "tx": tx}, station)  # type: ignore[arg-type]  # all that it needs

    asker.send(LiveFaults(1, {7: ImpairmentSpec("drop", "tx", probability=0.5)}))
    control.tend()
    assert asker.recv() == Tallies(1, {7: Tally()})
    assert station.has == (None, tx)

    asker.send(LiveFaults(2, {}))
    control.tend()
    assert asker.recv() == Tallies(2, {7: Tally()})
    assert station.has == (None, None)


def test_the_end_of_the_asker_is_an_end_of_file() -> None:
    asker, asked = Pipe()
    asker.close()
    with pytest.raises(EOFError):
        Control(asked, {}, Recorder()).tend()  # type: ignore[arg-type]  # all that it needs
