"""The faults that exist, each by the words in which it is said: one table for reading, printing, help and completion.

A form is ``TARGET PLACE KIND CLAUSES``: words in small letters stand as they are, words in capitals are quantities
(``quantities``), what is in brackets may be left out. Faults at endpoints follow from the registry of impairments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from endpoints.impairments.registry import impairments

PLACES = {"link": "LINK", "switch": "SWITCH", "host": "HOST"}
"""What names the place of a fault, by its target; of the others there is but one."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a form: perhaps a word, and the quantity behind it."""

    word: str | None
    quantity: str
    optional: bool

    @property
    def name(self) -> str:
        """What its value is called."""
        return self.word or self.quantity.lower()

    def __str__(self) -> str:
        text = f"{self.word} {self.quantity}" if self.word else self.quantity
        return f"[{text}]" if self.optional else text


@dataclass(frozen=True, slots=True)
class Form:
    """One way to say a fault. ``lasting``: it goes on until it is cleared; otherwise it is done at once, for good."""

    target: str
    place: str | None
    kind: str
    clauses: tuple[Clause, ...]
    summary: str
    lasting: bool

    @property
    def words(self) -> str:
        """The form as it is shown to people."""
        return " ".join(part for part in (self.target, self.place, self.kind, *map(str, self.clauses)) if part)


FOR = Clause("for", "TIME", optional=True)
"""At the end of every fault that lasts."""

_CLAUSE = re.compile(r"(\[?)(?:([a-z]+) )?([A-Z]+)\]?")


def form(target: str, kind: str, clauses: str, summary: str, *, lasting: bool = True, place: str | None = None) -> Form:
    """A form whose ``clauses`` are written like ``PROBABILITY [burst COUNT]``."""
    parts = [Clause(word or None, quantity, bool(bracket)) for bracket, word, quantity in _CLAUSE.findall(clauses)]
    ending = (FOR,) if lasting else ()
    return Form(target, place or PLACES.get(target), kind, (*parts, *ending), summary, lasting)


NETWORK = (
    form(
        "link",
        "loss",
        "PROBABILITY [burst COUNT]",
        "packets are lost, each on its own or in bursts of a mean length",
    ),
    form("link", "drop", "psn PSNS [opcode OPCODES]", "the packets with these PSNs are lost; without, chunks alone"),
    form("link", "drop", "every COUNT [opcode OPCODES]", "those with every n-th PSN are lost; without, chunks alone"),
    form("link", "drop", "opcode OPCODES", "all packets of these opcodes are lost"),
    form("link", "duplicate", "PROBABILITY", "packets come twice"),
    form("link", "reorder", "PROBABILITY [by TIME]", "packets are held back so long that later ones overtake them"),
    form("link", "delay", "TIME [jitter TIME]", "all packets come later by a time, give or take the jitter"),
    form("link", "corrupt", "PROBABILITY", "one bit of a packet is inverted"),
    form("link", "rate", "RATE", "the link is as slow as that"),
    form("link", "queue", "COUNT", "the link's queue holds so many packets"),
    form("link", "blackhole", "", "nothing comes through, and nobody is told"),
    form("link", "down", "", "the link is down in both directions, and its ends see that", place="WIRE"),
    form("switch", "down", "", "the switch is off: links, connection to the controller, rules"),
    form("host", "kill", "[PART]", "the host's endpoint is killed, or a part of it where it has a NIC", lasting=False),
    form("host", "stop", "", "the host's endpoint is stopped (SIGSTOP), and goes on when this is cleared"),
    form(
        "host", "slow", "PROBABILITY", "the host's endpoint is stopped for this share of the time, a little at a time"
    ),
    form("controller", "kill", "", "the controller is killed; the run starts another", lasting=False),
    form("vswitchd", "kill", "", "ovs-vswitchd, and so every switch, is killed; the run starts another", lasting=False),
)


@cache
def forms() -> tuple[Form, ...]:
    """Every form, those at endpoints included."""
    return (*NETWORK, *_endpoint_forms())


def _endpoint_forms() -> list[Form]:
    found = []
    for name, entry in impairments().items():
        takes = "" if entry.default_time_ns is None else " [by TIME]"
        takes += " [behind COUNT]" if entry.counts_packets else ""
        for way, whose, where in (("rx", " [from HOSTS]", "receives"), ("tx", "", "sends")):
            for which in ("PROBABILITY", "psn PSNS"):
                summary = f"{entry.summary}; of what the host {where}"
                found.append(form("host", f"{way} {name}", f"{which}{takes}{whose}", summary))
    return found
