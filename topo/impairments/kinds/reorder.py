"""A share of the frames is held back for a time, and those behind overtake them."""

from __future__ import annotations

from topo.impairments.forms import Divert, Form, Place
from topo.impairments.held import held
from topo.impairments.model import Impairment
from topo.impairments.netem import netem
from topo.impairments.parameters import share, time
from topo.impairments.programs import chance
from topo.impairments.registry import DIVERTING, NETEM, Kind, Way

DEFAULT_US = 5_000
"""As long as about fifteen frames of 4 KiB take at 100 Mbit/s."""


def _netem(impairment: Impairment, place: Place) -> Form:
    return Divert(chance(impairment.number("share"), place.salt), netem(f"delay {impairment.number('by'):.0f}us"))


def _held(impairment: Impairment, place: Place) -> Form:
    return held("reorder", place, impairment.number("share"), int(impairment.number("by")))


KIND = Kind(
    "reorder",
    "frames are held back so long that later ones overtake them",
    "delayed",
    (share(), time("by", default=DEFAULT_US)),
    (Way("netem", NETEM, _netem, seeded=True), Way("bpf", DIVERTING, _held, seeded=True)),
    cure="at the endpoint it can be had: host NAME rx reorder",
)
