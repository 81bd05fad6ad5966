"""What is done to packets, where, to which: an injected fault as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

PsnRange = int | tuple[int, int]
"""One PSN, or first and last of a range."""

_LAST_PSN = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class ImpairmentSpec:
    """One fault. Misuse raises ValueError; whether ``kind`` exists, and takes a time, is the registry's to say.

    - ``kind``: a module of this folder, such as ``drop``.
    - ``direction``: ``rx`` acts on what a host receives, ``tx`` on what it sends.
    - ``hosts``, ``senders``: ranks at which it acts and ranks whose packets it strikes; empty means all.
    - ``probability``: 0 to 1, each packet on its own, a repeated one anew. Or ``psns``: exactly these PSNs, the first
      ``sightings`` times that a packet of that PSN is seen, so that its retransmission comes through.
    - ``time_ns``: how long, for the kinds that hold packets back; None is their default.
    - ``packets``: for ``reorder``, behind how many later packets, if that comes sooner than ``time_ns``.
    - ``transport``: ``ud`` for multicast chunks alone, ``rc`` for the reliable connections alone.
    """

    kind: str
    direction: Literal["rx", "tx"] = "rx"
    hosts: frozenset[int] = frozenset()
    senders: frozenset[int] = frozenset()
    probability: float | None = None
    psns: tuple[PsnRange, ...] | None = None
    sightings: int = 1
    time_ns: int | None = None
    packets: int | None = None
    transport: Literal["any", "ud", "rc"] = "any"

    def __post_init__(self) -> None:
        if self.direction not in {"rx", "tx"}:
            raise ValueError(f"{self.kind}: direction {self.direction!r}: rx or tx")
        if self.transport not in {"any", "ud", "rc"}:
            raise ValueError(f"{self.kind}: transport {self.transport!r}: any, ud or rc")
        if (self.probability is None) == (self.psns is None):
            raise ValueError(f"{self.kind}: give either a probability or a list of PSNs")
        if self.psns == ():
            raise ValueError(f"{self.kind}: the list of PSNs is empty")
        if self.probability is not None and not (math.isfinite(self.probability) and 0 <= self.probability <= 1):
            raise ValueError(f"{self.kind}: probability {self.probability}: from 0 to 1")
        for entry in self.psns or ():
            self._check_range(entry)
        for name in ("sightings", "time_ns", "packets"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{self.kind}: {name} {value}: at least 1")

    def _check_range(self, entry: PsnRange) -> None:
        first, last = bounds(entry)
        if not 0 <= first <= last <= _LAST_PSN:
            raise ValueError(f"{self.kind}: PSNs {first}-{last}: from 0 to {_LAST_PSN}, the lower first")

    def acts_at(self, host: int, direction: str) -> bool:
        """Whether it has anything to do with what passes rank ``host`` in ``direction``."""
        return self.direction == direction and (not self.hosts or host in self.hosts)


def bounds(entry: PsnRange) -> tuple[int, int]:
    """First and last PSN of an entry."""
    return (entry, entry) if isinstance(entry, int) else entry


def parse_psns(text: str) -> tuple[PsnRange, ...]:
    """PSNs as people write them: ``17,40-60``. ValueError for anything else."""
    entries: list[PsnRange] = []
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        try:
            entries.append((int(first), int(last)) if dash else int(first))
        except ValueError:
            raise ValueError(f"PSNs {text!r}: numbers and ranges with commas between, like 17,40-60") from None
    return tuple(entries)
