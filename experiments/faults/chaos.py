"""Random timelines of mixed faults, and what may become of a run under one. Pure: dice are handed in.

A run must end verified, unless its timeline takes away what the operation cannot do without: then it may also end in an
error, which names a host and comes in bounded time. A wrong byte is never right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from experiments.faults.fault import Fault, parse_fault
from experiments.faults.timeline import Moment, Step
from topo.fabric import Fabric

_T = TypeVar("_T")

MOST_FAULTS = 4
BOUND_S = 120.0
"""Of a whole run, build and verification included: an operation gives up long before."""

_MS = 1_000_000


class Dice(Protocol):
    """What is used of ``random.Random``."""

    def choice(self, seq: Sequence[_T], /) -> _T:
        """One of them."""

    def randint(self, a: int, b: int, /) -> int:
        """From ``a`` to ``b``."""


def _host(dice: Dice, fabric: Fabric) -> str:
    return f"host {dice.choice(fabric.hosts).name}"


def _packets(dice: Dice, fabric: Fabric) -> str:
    way, share = dice.choice(("rx", "tx")), dice.randint(1, 10)
    what = dice.choice(("drop", "duplicate", "corrupt", "reorder", "delay"))
    by = f" by {dice.randint(1, 30)}ms" if what in {"reorder", "delay"} else ""
    return f"{_host(dice, fabric)} {way} {what} {share}%{by}{_lasting(dice)}"


def _exact(dice: Dice, fabric: Fabric) -> str:
    first = dice.randint(0, 500)
    return f"{_host(dice, fabric)} rx drop psn {first}-{first + dice.randint(0, 100)}"


def _deaf(dice: Dice, fabric: Fabric) -> str:
    return f"{_host(dice, fabric)} {dice.choice(('rx', 'tx'))} drop 100% for {dice.randint(50, 300)}ms"


def _stop(dice: Dice, fabric: Fabric) -> str:
    return f"{_host(dice, fabric)} stop for {dice.randint(50, 800)}ms"


def _kill(dice: Dice, fabric: Fabric) -> str:
    return f"{_host(dice, fabric)} kill"


def _link(dice: Dice, fabric: Fabric) -> str:
    inner = [link for link in fabric.links if link.a in fabric.switch and link.b in fabric.switch]
    link = dice.choice(inner or fabric.links)
    return f"link {link.a}-{link.b} down for {dice.randint(100, 1500)}ms"


def _switch(dice: Dice, fabric: Fabric) -> str:
    top = max(switch.tier for switch in fabric.switches)
    upper = [switch for switch in fabric.switches if switch.tier > 0 or top == 0]
    return f"switch {dice.choice(upper).name} down for {dice.randint(100, 1500)}ms"


def _lasting(dice: Dice) -> str:
    return f" for {dice.randint(100, 2000)}ms" if dice.randint(0, 1) else ""


MENU: Sequence[Callable[[Dice, Fabric], str]] = (
    *(_packets, _packets, _packets, _exact, _deaf, _stop, _stop, _link, _link, _switch, _kill),
)
"""What a fault is drawn from; what stands there more often comes more often."""


def timeline(dice: Dice, fabric: Fabric, span_ns: int) -> tuple[Step, ...]:
    """One to four faults within ``span_ns`` after the operation's start."""
    steps = []
    for _ in range(dice.randint(1, MOST_FAULTS)):
        words = dice.choice(MENU)(dice, fabric)
        steps.append(Step(Moment(dice.randint(0, span_ns // _MS) * _MS), parse_fault(words, fabric)))
    return tuple(sorted(steps, key=lambda step: step.when.at_ns))


def may_fail(steps: Sequence[Step]) -> bool:
    """Whether the timeline takes away what an operation may be unable to do without."""
    return any(isinstance(step.what, Fault) and _severe(step.what) for step in steps)


def _severe(fault: Fault) -> bool:
    return " " not in fault.kind or fault.get("probability") == 1


def wrong_with(
    steps: Sequence[Step], fabric: Fabric, *, verified: bool, error: str, wrong_bytes: int, seconds: float
) -> str | None:
    """What is wrong with how a run under ``steps`` ended, in a line; None if it ended as it may.

    ``error`` is what it said where it was not verified; ``seconds`` is what all of it took.
    """
    if wrong_bytes:
        return f"{wrong_bytes} bytes are wrong"
    if seconds > BOUND_S:
        return f"it took {seconds:.0f} s, more than {BOUND_S:.0f}"
    if verified:
        return None
    if not may_fail(steps):
        return f"it failed although nothing was taken away that cannot be made good: {error or 'without a word'}"
    named = {word.strip("():;,.'") for word in error.split()}
    if not named & (fabric.host.keys() | fabric.switch.keys()):
        return f"its error names nobody: {error or 'without a word'}"
    return None
