"""Random timelines of mixed faults. Pure: dice are handed in.

Faults are of two lengths, and what may become of a run follows from them (``faults.blame``): brief ones are over before
any endpoint loses its patience, and must be got over; the others last until the end. A blackhole that lasts is put on
hosts' own links alone: on others no host is at fault, and whom an error should name is open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from experiments.faults.fault import Fault, parse_fault
from experiments.faults.quantities import ARROW, PARTS
from experiments.faults.timeline import Moment, Step
from topo.fabric import Fabric, Link

_T = TypeVar("_T")

MOST_FAULTS = 4
ONE_LASTS_IN = 4
"""Of the faults that take something away, one in so many is for good."""

_MS = 1_000_000


class Dice(Protocol):
    """What is used of ``random.Random``."""

    def choice(self, seq: Sequence[_T], /) -> _T:
        """One of them."""

    def randint(self, a: int, b: int, /) -> int:
        """From ``a`` to ``b``."""


class Lowest:
    """Dice that always show the least: what they draw of a kind stands for it."""

    def choice(self, seq: Sequence[_T], /) -> _T:
        """The first."""
        return seq[0]

    def randint(self, a: int, b: int, /) -> int:
        """The least."""
        del b
        return a


@dataclass(frozen=True, slots=True)
class Ground:
    """What faults are drawn for: a fabric with links of ``rate_bps``, whose hosts may have NICs (``nics``)."""

    fabric: Fabric
    rate_bps: int
    nics: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: ``draw`` says one in words. One of weight 2 comes twice as often as one of weight 1."""

    name: str
    weight: int
    draw: Callable[[Dice, Ground], str]


def _host(dice: Dice, ground: Ground) -> str:
    return f"host {dice.choice(ground.fabric.hosts).name}"


def _direction(dice: Dice, link: Link) -> str:
    """A link's name: both directions, or one."""
    both = f"{link.a}-{link.b}"
    return f"link {dice.choice((both, f'{link.a}{ARROW}{link.b}', f'{link.b}{ARROW}{link.a}'))}"


def _link(dice: Dice, ground: Ground) -> str:
    return _direction(dice, dice.choice(ground.fabric.links))


def _brief(dice: Dice, least_ms: int = 50, most_ms: int = 1500) -> str:
    return f"for {dice.randint(least_ms, most_ms)}ms"


def _lasting(dice: Dice) -> str:
    """Of what takes nothing away: for a while, or until the end."""
    return _brief(dice, 100, 2000) if dice.randint(0, 1) else ""


def _severe(dice: Dice) -> str:
    return _brief(dice) if dice.randint(1, ONE_LASTS_IN) > 1 else ""


def _packets(dice: Dice, ground: Ground) -> str:
    way, share = dice.choice(("rx", "tx")), dice.randint(1, 10)
    what = dice.choice(("drop", "duplicate", "corrupt", "reorder", "delay"))
    by = f"by {dice.randint(1, 30)}ms" if what in {"reorder", "delay"} else ""
    return f"{_host(dice, ground)} {way} {what} {share}% {by} {_lasting(dice)}"


def _psns(dice: Dice) -> str:
    first = dice.randint(0, 500)
    return f"psn {first}-{first + dice.randint(0, 100)}"


def _exact(dice: Dice, ground: Ground) -> str:
    return f"{_host(dice, ground)} rx drop {_psns(dice)}"


def _deaf(dice: Dice, ground: Ground) -> str:
    return f"{_host(dice, ground)} {dice.choice(('rx', 'tx'))} drop 100% {_severe(dice)}"


def _stop(dice: Dice, ground: Ground) -> str:
    return f"{_host(dice, ground)} stop {_severe(dice)}"


def _kill(dice: Dice, ground: Ground) -> str:
    return f"{_host(dice, ground)} kill {dice.choice(('', *PARTS)) if ground.nics else ''}"


def _on_link(what: Callable[[Dice, Ground], str]) -> Callable[[Dice, Ground], str]:
    """``what`` happens to packets on a link, for a while or until the end."""

    def draw(dice: Dice, ground: Ground) -> str:
        return f"{_link(dice, ground)} {what(dice, ground)} {_lasting(dice)}"

    return draw


def _share(what: str) -> Callable[[Dice, Ground], str]:
    return lambda dice, _: f"{what} {dice.randint(1, 10)}%"


def _bursts(dice: Dice, _: Ground) -> str:
    return f"loss {dice.randint(1, 5)}% burst {dice.randint(2, 10)}"


def _reorder(dice: Dice, _: Ground) -> str:
    return f"reorder {dice.randint(1, 10)}% by {dice.randint(1, 30)}ms"


def _rate(dice: Dice, ground: Ground) -> str:
    return f"rate {ground.rate_bps * dice.randint(20, 90) // 100}bit"


def _delay(dice: Dice, ground: Ground) -> str:
    time = dice.randint(2, 20)
    return f"{_link(dice, ground)} delay {time}ms jitter {dice.randint(1, time - 1)}ms {_lasting(dice)}"


def _blackhole(dice: Dice, ground: Ground) -> str:
    link = dice.choice(ground.fabric.links)
    lasting = _severe(dice) if link.a in ground.fabric.host else _brief(dice)
    return f"{_direction(dice, link)} blackhole {lasting}"


def _down(dice: Dice, ground: Ground) -> str:
    link = dice.choice(ground.fabric.links)
    return f"link {link.a}-{link.b} down {_severe(dice)}"


def _switch(dice: Dice, ground: Ground) -> str:
    return f"switch {dice.choice(ground.fabric.switches).name} down {_severe(dice)}"


MENU: Sequence[Kind] = (
    Kind("packets at a host", 4, _packets),
    Kind("exact packets at a host", 2, _exact),
    Kind("deaf or mute host", 2, _deaf),
    Kind("stopped host", 2, _stop),
    Kind("killed host", 1, _kill),
    Kind("loss on a link", 2, _on_link(_share("loss"))),
    Kind("bursts of loss on a link", 1, _on_link(_bursts)),
    Kind("exact packets on a link", 1, _on_link(lambda dice, _: f"drop {_psns(dice)}")),
    Kind("every n-th packet on a link", 1, _on_link(lambda dice, _: f"drop every {dice.randint(10, 200)}")),
    Kind("duplicates on a link", 1, _on_link(_share("duplicate"))),
    Kind("corruption on a link", 1, _on_link(_share("corrupt"))),
    Kind("reordering on a link", 2, _on_link(_reorder)),
    Kind("delay of a link", 1, _delay),
    Kind("slow link", 1, _on_link(_rate)),
    Kind("short queue of a link", 1, _on_link(lambda dice, _: f"queue {dice.randint(20, 500)}")),
    Kind("blackhole on a link", 2, _blackhole),
    Kind("link down", 3, _down),
    Kind("switch down", 3, _switch),
    Kind("controller killed", 1, lambda _dice, _ground: "controller kill"),
    Kind("ovs-vswitchd killed", 1, lambda _dice, _ground: "vswitchd kill"),
)
"""All that is drawn from, where the machine can carry it out."""


def undrawn(ground: Ground, refusal: Callable[[Fault], str | None]) -> dict[str, str]:
    """The kinds that cannot be carried out here, by name, each with the reason, which ``refusal`` gives of a fault."""
    reasons = {kind.name: refusal(parse_fault(kind.draw(Lowest(), ground), ground.fabric)) for kind in MENU}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def killing(dice: Dice, ground: Ground, span_ns: int) -> tuple[Step, ...]:
    """A host, or a part of one with a NIC, is killed at some time within ``span_ns`` after the operation's start."""
    when = Moment(dice.randint(0, span_ns // _MS) * _MS)
    return (Step(when, parse_fault(_kill(dice, ground), ground.fabric)),)


def timeline(dice: Dice, ground: Ground, span_ns: int, without: Sequence[str] = ()) -> tuple[Step, ...]:
    """One to four faults within ``span_ns`` after the operation's start, of all kinds but those named ``without``."""
    kinds = [kind for kind in MENU if kind.name not in without for _ in range(kind.weight)]
    steps = []
    for _ in range(dice.randint(1, MOST_FAULTS)):
        words = dice.choice(kinds).draw(dice, ground)
        steps.append(Step(Moment(dice.randint(0, span_ns // _MS) * _MS), parse_fault(words, ground.fabric)))
    return tuple(sorted(steps, key=lambda step: step.when.at_ns))
