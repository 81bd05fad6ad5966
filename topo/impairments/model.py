"""An impairment of one direction of a link, and what was seen of it, as values.

An impairment acts on what the sending end's interface sends: of the direction a -> b of a link, on the egress of a's
interface. It stands on top of the shaping of :mod:`topo.shaping` and leaves that alone, but for the kinds whose point
it is to change it (``rate``, ``queue``, ``down``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Range = tuple[int, int]
"""First and last."""

Value = float | int | tuple[Range, ...]

Mechanism = Literal["netem", "bpf", "shaping"]
"""Who does it: the kernel's network emulator; HTB classes and ifbs chosen by classic BPF; the shaping itself."""

Effect = Literal["dropped", "delayed", "duplicated", "corrupted", "changed"]
"""What becomes of the frames that are struck; ``changed``: it strikes none, the link is another while it lasts."""


class ImpairmentError(ValueError):
    """An impairment that does not exist, contradicts itself, or cannot be done here; one line, for the user."""


@dataclass(frozen=True, slots=True)
class Impairment:
    """One impairment, valid as far as it is known without a link: made by ``registry.impairment`` or ``parse``.

    ``parameters`` has every parameter of the ``kind``, those not given with their defaults: shares from 0 to 1, times
    in microseconds, rates in bit/s, queues in packets, PSNs and opcodes as ranges. ``text`` is how a person writes it.
    """

    kind: str
    parameters: Mapping[str, Value | None] = field(hash=False)
    text: str

    def __str__(self) -> str:
        return self.text

    def number(self, name: str) -> float:
        """A parameter that is a number."""
        value = self.parameters[name]
        assert isinstance(value, int | float), name
        return value

    def ranges(self, name: str) -> tuple[Range, ...]:
        """A parameter that is a list of ranges; empty if it was not given."""
        value = self.parameters[name]
        assert value is None or isinstance(value, tuple), name
        return value or ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What one impairment has done so far, by the kernel's own exact counters.

    ``struck`` frames were ``effect``; those that wait to be sent later count when they leave. ``lost`` frames found
    the place full where delayed ones wait, and must be none. ``queued`` frames came to the link's own queue
    meanwhile, those among them that were struck and not dropped. ``seeded``: the same seed strikes the same multicast
    frames again; False where the kernel throws dice.
    """

    name: str
    impairment: Impairment
    mechanism: Mechanism
    seeded: bool
    effect: Effect
    struck: int = 0
    lost: int = 0
    queued: int = 0

    @property
    def dropped(self) -> int:
        """Frames that did not come through because of it."""
        return self.lost + (self.struck if self.effect == "dropped" else 0)

    @property
    def packets(self) -> int:
        """Frames that could have been struck: those that came through, each once, and those that did not."""
        return self.queued + self.dropped - (self.struck if self.effect == "duplicated" else 0)
