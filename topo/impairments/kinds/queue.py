"""The link's queue has another length."""

from __future__ import annotations

from dataclasses import replace

from topo.impairments.forms import Form, Place, Reshape
from topo.impairments.model import Impairment
from topo.impairments.parameters import count
from topo.impairments.registry import SHAPING, Kind, Way


def _reshape(impairment: Impairment, _place: Place) -> Form:
    packets = int(impairment.number("packets"))
    return Reshape(lambda spec: replace(spec, queue_packets=packets))


KIND = Kind(
    "queue",
    "the link's queue holds so many packets",
    "changed",
    (count("packets", "packets that wait", 1, 1_000_000, required=True),),
    (Way("shaping", SHAPING, _reshape, seeded=True),),
)
