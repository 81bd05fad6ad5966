"""Everything is lost, and nobody is told: the link stays up."""

from __future__ import annotations

from topo.impairments.forms import Drop, Form, Place
from topo.impairments.model import Impairment
from topo.impairments.programs import ALL
from topo.impairments.registry import CHOOSING, Kind, Way


def _drop(_impairment: Impairment, _place: Place) -> Form:
    return Drop(ALL)


KIND = Kind(
    "blackhole",
    "every frame is lost, the link stays up",
    "dropped",
    (),
    (Way("bpf", CHOOSING, _drop, seeded=True),),
)
