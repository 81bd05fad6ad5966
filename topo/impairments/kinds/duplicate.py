"""Frames come twice, the second right behind the first."""

from __future__ import annotations

from topo.impairments.forms import Divert, Form, Place
from topo.impairments.model import Impairment
from topo.impairments.netem import netem
from topo.impairments.parameters import share
from topo.impairments.programs import chance
from topo.impairments.registry import NETEM, Kind, Way


def _netem(impairment: Impairment, place: Place) -> Form:
    return Divert(chance(impairment.number("share"), place.salt), netem("duplicate 100%"), copies=2)


KIND = Kind(
    "duplicate",
    "frames come twice",
    "duplicated",
    (share(),),
    (Way("netem", NETEM, _netem, seeded=True),),
    cure="at the endpoint it can be had: host NAME rx duplicate",
)
