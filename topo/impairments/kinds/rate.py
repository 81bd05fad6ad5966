"""The link is slower."""

from __future__ import annotations

from dataclasses import replace

from topo.impairments.forms import Form, Place, Reshape
from topo.impairments.model import Impairment, ImpairmentError
from topo.impairments.parameters import rate
from topo.impairments.registry import SHAPING, Kind, Way
from topo.shaping import MAX_RATE_BPS, MIN_RATE_BPS


def _reshape(impairment: Impairment, place: Place) -> Form:
    wanted = int(impairment.number("rate"))
    if wanted > place.spec.rate_bps:
        raise ImpairmentError(f"rate: {wanted} bit/s is more than the link's {place.spec.rate_bps}")
    return Reshape(lambda spec: replace(spec, rate_bps=min(spec.rate_bps, wanted)))


KIND = Kind(
    "rate",
    "the link is as slow as that",
    "changed",
    (rate("rate", MIN_RATE_BPS, MAX_RATE_BPS),),
    (Way("shaping", SHAPING, _reshape, seeded=True),),
)
