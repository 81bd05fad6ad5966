"""Frames come later by a time, give or take a jitter: all of them, or a share."""

from __future__ import annotations

from collections.abc import Mapping

from topo.impairments.forms import Divert, Form, Place
from topo.impairments.held import held
from topo.impairments.model import Impairment, ImpairmentError, Value
from topo.impairments.netem import netem
from topo.impairments.parameters import share, time
from topo.impairments.programs import chance
from topo.impairments.registry import DIVERTING, NETEM, Kind, Way

CURE = "at the endpoint it can be had: host NAME rx delay"


def _check(values: Mapping[str, Value | None]) -> None:
    by, jitter = values["by"], values["jitter"] or 0
    assert isinstance(by, int)
    assert isinstance(jitter, int)
    if jitter >= by:
        raise ImpairmentError(f"delay: a jitter of {jitter} us must be less than the delay of {by} us")


def _jitter(impairment: Impairment) -> int:
    return int(impairment.number("jitter")) if impairment.parameters["jitter"] is not None else 0


def _netem(impairment: Impairment, place: Place) -> Form:
    times = f"delay {impairment.number('by'):.0f}us {_jitter(impairment)}us"
    return Divert(chance(impairment.number("share"), place.salt), netem(times))


def _held(impairment: Impairment, place: Place) -> Form:
    part = impairment.number("share")
    if part == 1:
        raise ImpairmentError(f"delay: of all frames, in order, needs netem; bpf can hold a share of them back: {CURE}")
    return held("delay", place, part, int(impairment.number("by")), _jitter(impairment))


KIND = Kind(
    "delay",
    "frames come later by a time, give or take the jitter",
    "delayed",
    (time("by", required=True), time("jitter"), share(required=False, default=1.0)),
    (Way("netem", NETEM, _netem, seeded=True), Way("bpf", DIVERTING, _held, seeded=True)),
    check=_check,
    cure=CURE,
)
