"""When faults come: steps of a timeline, each at a time after the beginning of an operation.

Operations are counted from 1 without warm-ups, and an operation begins at the instant at which all ranks enter its
barrier. A step puts a fault in or clears an earlier one; faults are numbered from 1 in the order of their steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from experiments import units
from experiments.errors import UserError
from experiments.faults.fault import Fault, parse_fault
from experiments.faults.quantities import tell_time
from topo.fabric import Fabric

_STEP = re.compile(r"at (?P<at>\S+)(?: of operation (?P<operation>\d+))?: *(?P<words>.*)")
_CLEAR = re.compile(r"clear (\d+)")


@dataclass(frozen=True, slots=True)
class Clear:
    """Clear the fault of that number."""

    number: int

    def __str__(self) -> str:
        return f"clear {self.number}"


@dataclass(frozen=True, slots=True)
class Moment:
    """A time after the beginning of an operation."""

    at_ns: int
    operation: int = 1

    def __str__(self) -> str:
        ordinal = f" of operation {self.operation}" if self.operation > 1 else ""
        return f"at {tell_time(self.at_ns) if self.at_ns else '0s'}{ordinal}"


@dataclass(frozen=True, slots=True)
class Step:
    """What is done when."""

    when: Moment
    what: Fault | Clear

    def __str__(self) -> str:
        return f"{self.when}: {self.what}"


def parse_what(words: str, fabric: Fabric) -> Fault | Clear:
    """A fault, or ``clear 2``."""
    match = _CLEAR.fullmatch(words.strip())
    return Clear(int(match[1])) if match else parse_fault(words, fabric)


def split_step(text: str) -> tuple[Moment, str]:
    """The time of a step such as ``at 1.5s: link e00-a00 loss 2% for 3s``, and its words, which are not looked at."""
    match = _STEP.fullmatch(" ".join(text.split()))
    if match is None:
        raise UserError(
            f"{text!r}: write a time after the operation's start and a fault, like at 1.5s: link e00-a00 loss 2% for 3s"
        )
    operation = int(match["operation"] or 1)
    if operation < 1:
        raise UserError(f"{text!r}: operations are counted from 1")
    return Moment(units.parse_time(match["at"], f"{text!r}: time"), operation), match["words"]


def check_clears(steps: tuple[Step, ...]) -> None:
    """:class:`UserError` where a step clears what no earlier step of the list has put in."""
    faults = 0
    for step in steps:
        if isinstance(step.what, Fault):
            faults += 1
        elif not 1 <= step.what.number <= faults:
            raise UserError(f"{step}: no such fault before it, they are numbered from 1 in their order")
