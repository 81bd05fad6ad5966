"""Carries injected faults out on raw frames, before they are decoded or after they are encoded.

Which packets are struck depends on their identities alone (``identity``), so the list of hits of a seed is the same
whatever the order and the grouping in which they came. No clock: times are arguments, in nanoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from endpoints.core import layout
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


@dataclass(slots=True)
class Tally:
    """What a live fault has done: packets that it concerned, and those of them that it struck."""

    packets: int = 0
    struck: int = 0


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
    ranges, sorted, each ``last`` at least its predecessors'; ``addresses`` are those of its senders; ``tally`` is kept
    for faults that come and go.
    """

    spec: ImpairmentSpec
    strike: Callable[[Blow], None]
    salt: np.uint64
    threshold: int
    first: I64
    last: I64
    addresses: npt.NDArray[np.uint32]
    tally: Tally | None = None

    def concerns(self, packets: Identities) -> Bool:
        """Which packets it is for, whatever becomes of them."""
        found = packets.roce
        if self.spec.senders:
            found = found & np.isin(packets.sender, self.addresses)
        if self.spec.transport != "any":
            found = found & ((packets.kind == UD) == (self.spec.transport == "ud"))
        return found

    def strikes(self, packets: Identities, attempts: I64, rolls: U64) -> Bool:
        """Which of those it strikes, by identity and by the number that each has rolled."""
        if self.spec.psns is None:
            return rolls >> _SPARE_BITS < self.threshold
        return self._lists(packets.psn) & (attempts < self.spec.sightings)

    def _lists(self, psn: npt.NDArray[np.uint32]) -> Bool:
        at = np.searchsorted(self.first, psn, side="right") - 1
        listed: Bool = (at >= 0) & (psn <= self.last[at])
        return listed


class Impairer:
    """The faults of one direction at one rank. ValueError for a spec that cannot be carried out.

    ``senders`` gives the rank of each IPv4 address. ``log`` lists what was struck in the order in which it came, at
    most ``log_limit`` entries if one is set; ``counters`` counts all of it by kind. Beside ``specs``, which stay, there
    are live faults, which come and go by number (:meth:`set_live`).
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
        self._addresses = dict(senders)
        self._log_limit = log_limit
        self._sightings = Sightings()
        self._holding = Holding()
        self._rules: list[_Rule] = []
        self._live: dict[int, _Rule] = {}
        self._salt = partial(salt, seed, host, direction)
        ordinals: Counter[str] = Counter()
        for spec in specs:
            rule = _rule(spec, self._salt(spec.kind, ordinals[spec.kind]), senders)
            if spec.acts_at(host, direction):
                self._rules.append(rule)
                ordinals[spec.kind] += 1
        self._fixed = tuple(self._rules)
        self._gather()

    def set_live(self, specs: Mapping[int, ImpairmentSpec]) -> dict[int, Tally]:
        """From now on exactly these live faults are in force, by number; what each of them, and of those before, did.

        One that stays goes on as it was. Packets that are held back already are still let go in their time.
        """
        before = self._live
        self._live = {
            number: before[number]
            if number in before and before[number].spec == spec
            else _rule(spec, self._salt(f"live {spec.kind}", number), self._addresses, Tally())
            for number, spec in specs.items()
        }
        self._gather()
        return {number: rule.tally for number, rule in {**before, **self._live}.items() if rule.tally is not None}

    @property
    def idle(self) -> bool:
        """Whether nothing is done to packets, and none is held back."""
        return not self._rules and self.next_timeout() is None

    def _gather(self) -> None:
        self._rules = [*self._fixed, *self._live.values()]
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

    def held(self) -> Counter[int]:
        """How many packets are held back now, copies of them included, by opcode."""
        return Counter(opcode for frames in self._holding.waiting() for opcode in frames[:, layout.BTH].tolist())

    def judge(self, packets: Identities, lengths: Lengths) -> Fates | None:
        """What becomes of packets of ``lengths`` bytes each, or None if nothing does; this counts as seeing them."""
        attempts = self._sightings.count(packets.key)
        again = attempts.view(np.uint64)
        fates: Fates | None = None
        for rule, rolls in zip(self._rules, mix(mix(packets.key ^ self._salts) ^ again), strict=True):
            concerned = rule.concerns(packets)
            if fates is not None:
                concerned = concerned & (fates.copies > 0)  # what is lost already is not struck again
            hit = concerned & rule.strikes(packets, attempts, rolls)
            if rule.tally is not None:
                rule.tally.packets += int(concerned.sum())
                rule.tally.struck += int(hit.sum())
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
            self.log.append(Hit(kind, self._addresses.get(address), opcode, psn, imm if numbered else None, attempt))


def _rule(spec: ImpairmentSpec, number: int, senders: Mapping[int, int], tally: Tally | None = None) -> _Rule:
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
        tally,
    )


def _flip(frames: U8, flip: I64) -> None:
    """Invert one bit of each row; the first bit of a byte is its highest."""
    rows = np.flatnonzero(flip >= 0)
    bits = flip[rows]
    frames[rows, bits >> 3] ^= (0x80 >> (bits & 7)).astype(np.uint8)
