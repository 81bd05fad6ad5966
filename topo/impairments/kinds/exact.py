"""Chosen packets are lost: by PSN, every n-th, by opcode.

Unless opcodes are named it strikes multicast chunks alone. A packet of a reliable connection is repeated under the same
PSN, and would be lost as often as it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from topo.impairments.forms import Drop, Form, Place
from topo.impairments.model import Impairment, ImpairmentError, Value
from topo.impairments.parameters import LAST_PSN, count, ranges
from topo.impairments.programs import exact
from topo.impairments.registry import CHOOSING, Kind, Way
from topo.impairments.roce import UD_SEND_ONLY_IMM


def _check(values: Mapping[str, Value | None]) -> None:
    if all(value is None for value in values.values()):
        raise ImpairmentError("exact: say which packets: psn 17,40-60, every 16, or opcode 0x65")


def _drop(impairment: Impairment, _place: Place) -> Form:
    every = impairment.parameters["every"]
    assert every is None or isinstance(every, int)
    opcode = impairment.ranges("opcode") or ((UD_SEND_ONLY_IMM, UD_SEND_ONLY_IMM),)
    return Drop(exact(impairment.ranges("psn"), every, opcode))


KIND = Kind(
    "exact",
    "the packets with these PSNs, every n-th, or of these opcodes are lost",
    "dropped",
    (
        ranges("psn", "PSNs", LAST_PSN),
        count("every", "the last of so many PSNs", 2, LAST_PSN),
        ranges("opcode", "BTH opcodes", 255),
    ),
    (Way("bpf", CHOOSING, _drop, seeded=True),),
    check=_check,
    cure="at the endpoint it can be had: host NAME rx drop psn LIST",
)
