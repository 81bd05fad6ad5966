"""Everything is lost, and nobody is told: the link stays up."""

from __future__ import annotations

from topo.impairments.bpf import Instruction, Program
from topo.impairments.forms import Drop, Form, Place
from topo.impairments.model import Impairment
from topo.impairments.registry import Kind, Way

_ALL = Program((Instruction(0x06, 0, 0, 0xFFFFFFFF),))


def _form(_impairment: Impairment, _place: Place) -> Form:
    return Drop(_ALL)


KIND = Kind(
    "blackhole",
    "every frame is lost, the link stays up",
    "dropped",
    (),
    (Way("bpf", frozenset({"htb", "bpf"}), _form, seeded=True),),
)
