"""Bursty loss: the Gilbert-Elliott model (E. Elliott: Estimates of error rates for codes on burst-noise channels).

Two states, good and bad, each with a probability of loss. It needs a memory from frame to frame, so netem alone has it.
"""

from __future__ import annotations

from topo.impairments.forms import Divert, Form, Place
from topo.impairments.model import Impairment
from topo.impairments.netem import netem, percent
from topo.impairments.parameters import share
from topo.impairments.programs import ALL
from topo.impairments.registry import NETEM, Kind, Way


def _netem(impairment: Impairment, _place: Place) -> Form:
    model = " ".join(percent(impairment.number(name)) for name in ("p", "r", "bad", "good"))
    return Divert(ALL, netem(f"loss gemodel {model}"), counts="drops")


KIND = Kind(
    "gemodel",
    "frames are lost in bursts: p from good to bad, r back, and the loss in either state",
    "dropped",
    (
        share("p"),
        share("r"),
        share("bad", required=False, default=1.0),
        share("good", required=False, default=0.0, zero=True),
    ),
    (Way("netem", NETEM, _netem),),
    cure="classic BPF has no memory from frame to frame; use loss, or a kernel with netem",
)
