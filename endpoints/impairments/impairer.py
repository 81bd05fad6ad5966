"""Carries injected faults out on raw frames, before they are decoded or after they are encoded.

Which packets are struck depends on their identities alone (``identity``), so the list of hits of a seed is the same
whatever the order and the grouping in which they came. No clock: times are arguments, in nanoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from endpoints.core.packets import U8
from endpoints.impairments.fates import I64, U64, Bool, Fates
from endpoints.impairments.holding import Holding, Lengths, Part
from endpoints.impairments.identity import UD, Identities, mix, salt
from endpoints.impairments.registry import Blow, check
from endpoints.impairments.sightings import Sightings
from endpoints.impairments.spec import ImpairmentSpec, bounds

_CERTAIN: Final = 1 << 53
"""Chances are 53-bit numbers, as exact as the probability itself."""
_SPARE_BITS: Final = np.uint64(64 - 53)


class Hit(NamedTuple):
    """A packet that was struck.

    ``sender`` is a rank, None if the address is no rank's; ``imm`` is None for all but multicast chunks; ``attempt``
    says how often the same packet had passed before.
    """

    kind: str
    sender: int | None
    opcode: int
    psn: int
    imm: int | None
    attempt: int


@dataclass(frozen=True, slots=True)
class _Rule:
    """A spec made ready.

    ``salt`` sets its chances apart, ``threshold`` is its probability times 2**53; ``first`` and ``last`` are its PSN
    ranges, sorted, each ``last`` at least its predecessors'; ``addresses`` are those of its senders.
    """

    spec: ImpairmentSpec
    strike: Callable[[Blow], None]
    salt: np.uint64
    threshold: int
    first: I64
    last: I64
    addresses: npt.NDArray[np.uint32]

    def strikes(self, packets: Identities, attempts: I64, rolls: U64) -> Bool:
        """Which packets it is for, by identity and by the number that each has rolled."""
        hit: Bool
        if self.spec.psns is None:
            hit = rolls >> _SPARE_BITS < self.threshold
        else:
            hit = self._lists(packets.psn) & (attempts < self.spec.sightings)
        if self.spec.senders:
            hit = hit & np.isin(packets.sender, self.addresses)
        if self.spec.transport != "any":
            hit = hit & ((packets.kind == UD) == (self.spec.transport == "ud"))
        return hit

    def _lists(self, psn: npt.NDArray[np.uint32]) -> Bool:
        at = np.searchsorted(self.first, psn, side="right") - 1
        listed: Bool = (at >= 0) & (psn <= self.last[at])
        return listed


class Impairer:
    """The faults of one direction at one rank. ValueError for a spec that cannot be carried out.

    ``senders`` gives the rank of each IPv4 address. ``log`` lists what was struck in the order in which it came, at
    most ``log_limit`` entries if one is set; ``counters`` counts all of it by kind.
    """

    def __init__(
        self,
        specs: Iterable[ImpairmentSpec],
        seed: int,
        host: int,
        direction: str,
        senders: Mapping[int, int],
        log_limit: int | None = None,
    ) -> None:
        self.log: list[Hit] = []
        self.counters: Counter[str] = Counter()
        self._ranks = dict(senders)
        self._log_limit = log_limit
        self._sightings = Sightings()
        self._holding = Holding()
        self._rules: list[_Rule] = []
        ordinals: Counter[str] = Counter()
        for spec in specs:
            rule = _rule(spec, salt(seed, host, direction, spec.kind, ordinals[spec.kind]), senders)
            if spec.acts_at(host, direction):
                self._rules.append(rule)
                ordinals[spec.kind] += 1
        self._salts = np.array([[rule.salt] for rule in self._rules], np.uint64)

    def apply(self, frames: U8, lengths: Lengths, now_ns: int) -> list[Part]:
        """What is to be handed on now of frames of shape (n, stride), in order, as further such pairs.

        Corruption alters the frames given. Those handed on may be views of them; those held back are copies.
        """
        if not self._rules or not len(lengths):
            return [(frames, lengths)]
        fates = self.judge(Identities.of(frames, lengths), lengths)
        if fates is not None:
            _flip(frames, fates.flip)
        return self._holding.sort_out(frames, lengths, fates, now_ns)

    def due(self, now_ns: int) -> list[Part]:
        """What was held back until now or earlier, in order of time."""
        return self._holding.due(now_ns)

    def next_timeout(self) -> int | None:
        """When :meth:`due` has something next, in ns, or None."""
        return self._holding.next_timeout()

    def judge(self, packets: Identities, lengths: Lengths) -> Fates | None:
        """What becomes of packets of ``lengths`` bytes each, or None if nothing does; this counts as seeing them."""
        attempts = self._sightings.count(packets.key)
        again = attempts.view(np.uint64)
        fates: Fates | None = None
        for rule, rolls in zip(self._rules, mix(mix(packets.key ^ self._salts) ^ again), strict=True):
            hit = packets.roce & rule.strikes(packets, attempts, rolls)
            if fates is not None:
                hit &= fates.copies > 0  # what is lost already is not struck again
            if not hit.any():
                continue
            fates = fates or Fates.unharmed(np.asarray(lengths, np.int64))
            rule.strike(Blow(fates, hit, mix(rolls), rule.spec))
            self._note(rule.spec.kind, packets, attempts, hit)
        return fates

    def _note(self, kind: str, packets: Identities, attempts: I64, hit: Bool) -> None:
        rows = np.flatnonzero(hit).tolist()
        self.counters[kind] += len(rows)
        if self._log_limit is not None:
            rows = rows[: max(0, self._log_limit - len(self.log))]
        columns = (packets.sender, packets.opcode, packets.psn, packets.imm, packets.kind == UD, attempts)
        for address, opcode, psn, imm, numbered, attempt in zip(*(c[rows].tolist() for c in columns), strict=True):
            self.log.append(Hit(kind, self._ranks.get(address), opcode, psn, imm if numbered else None, attempt))


def make_impairer(
    specs: Iterable[ImpairmentSpec], seed: int, host: int, direction: str, senders: Mapping[int, int]
) -> Impairer | None:
    """The impairer of one direction at rank ``host``, or None if no spec acts there, so that nothing is paid for it."""
    specs = list(specs)
    if not any(spec.acts_at(host, direction) for spec in specs):
        return None
    return Impairer(specs, seed, host, direction, senders)


def _rule(spec: ImpairmentSpec, number: int, senders: Mapping[int, int]) -> _Rule:
    strike = check(spec).strike
    ranges = sorted(bounds(entry) for entry in spec.psns or ())
    addresses = [address for address, rank in senders.items() if rank in spec.senders]
    return _Rule(
        spec,
        strike,
        np.uint64(number),
        round((spec.probability or 0.0) * _CERTAIN),
        np.array([first for first, _ in ranges], np.int64),
        np.maximum.accumulate(np.array([last for _, last in ranges], np.int64)),
        np.array(addresses, np.uint32),
    )


def _flip(frames: U8, flip: I64) -> None:
    """Invert one bit of each row; the first bit of a byte is its highest."""
    rows = np.flatnonzero(flip >= 0)
    bits = flip[rows]
    frames[rows, bits >> 3] ^= (0x80 >> (bits & 7)).astype(np.uint8)
