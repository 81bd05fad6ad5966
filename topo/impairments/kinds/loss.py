"""Independent loss. BPF comes first: it repeats its victims where netem throws dice, and its counter is its own."""

from __future__ import annotations

from topo.impairments.forms import Divert, Drop, Form, Place
from topo.impairments.model import Impairment
from topo.impairments.netem import netem, percent
from topo.impairments.parameters import share
from topo.impairments.programs import ALL, chance
from topo.impairments.registry import CHOOSING, NETEM, Kind, Way


def _drop(impairment: Impairment, place: Place) -> Form:
    return Drop(chance(impairment.number("share"), place.salt))


def _netem(impairment: Impairment, _place: Place) -> Form:
    return Divert(ALL, netem(f"loss {percent(impairment.number('share'))}"), counts="drops")


KIND = Kind(
    "loss",
    "each frame is lost with a probability of its own",
    "dropped",
    (share(),),
    (Way("bpf", CHOOSING, _drop, seeded=True), Way("netem", NETEM, _netem)),
    cure="at the endpoint it can be had: host NAME rx drop",
)
