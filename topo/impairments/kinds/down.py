"""The link is down: in both directions, and both ends see it."""

from __future__ import annotations

from topo.impairments.forms import Form, Place, SetDown
from topo.impairments.model import Impairment
from topo.impairments.registry import SHAPING, Kind, Way


def _down(_impairment: Impairment, _place: Place) -> Form:
    return SetDown()


KIND = Kind(
    "down",
    "the link is down in both directions, and its ends see that",
    "changed",
    (),
    (Way("shaping", SHAPING, _down, seeded=True),),
)
