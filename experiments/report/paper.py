"""The comparisons of the paper: what it says, what theory says, and what was measured here.

The paper is Khalilov et al., SC'24: 188 nodes, links of 56 Gbit/s. Where its text was not at hand its figures are from
memory and say so. Theory comes from the bytes that each link must carry: of two algorithms the times are, at best, in
the proportion of their busiest links, the traffic in that of all links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from experiments.report.evidence import Evidence, Operation
from experiments.report.groups import Cell
from experiments.units import format_size

READ = "read in its abstract"
DIGEST = "read in a digest"
NOTES = "read in notes on it"
MEMORY = "from memory, unchecked"

Pair = tuple[list[Operation], list[Operation]]


@dataclass(frozen=True)
class Found:
    """What is to be said of one comparison: theory and measurement as numbers, and of which operations."""

    theory: float | None
    ours: float
    operations: Sequence[Operation]

    @property
    def compares(self) -> bool:
        """Whether it is between two algorithms."""
        return len({operation.run.algorithm for operation in self.operations}) > 1

    @property
    def where(self) -> str:
        """The conditions of the measurement."""
        ranks = sorted({operation.run.ranks for operation in self.operations})
        sizes = sorted({operation.run.bytes_per_rank for operation in self.operations})
        told = "/".join(map(str, ranks)), "/".join(map(format_size, sizes))
        return f"{told[0]} ranks, {told[1]}, {Cell(0, tuple(self.operations)).verdicts}"


@dataclass(frozen=True)
class Comparison:
    """One line of the table. ``find`` is None for what is not emulated here, ``missing`` says what would bring it."""

    what: str
    paper: str
    standing: str
    find: Callable[[Evidence], Found | None] | None
    missing: str


def pairs(evidence: Evidence, one: str, other: str) -> list[Pair]:
    """Operations of two algorithms in the same setting; most ranks and most bytes first."""
    found: dict[tuple[tuple[str, object], ...], Pair] = {}
    for operation in evidence.counting:
        if operation.run.algorithm in (one, other) and operation.scenario.loss == 0:
            pair = found.setdefault(tuple(operation.setting.items()), ([], []))
            pair[operation.run.algorithm == other].append(operation)
    both = [pair for pair in found.values() if all(pair)]
    return sorted(both, key=lambda pair: (-pair[0][0].run.ranks, -pair[0][0].run.bytes_per_rank))


def times(multicast: str, rival: str) -> Callable[[Evidence], Found | None]:
    """How many times longer the rival takes."""

    def find(evidence: Evidence) -> Found | None:
        for ours, theirs in pairs(evidence, multicast, rival)[:1]:
            ratio = median(o.seconds for o in theirs) / median(o.seconds for o in ours)
            return Found(_busiest(theirs, ours), ratio, [*ours, *theirs])
        return None

    return find


def traffic(multicast: str, rival: str) -> Callable[[Evidence], Found | None]:
    """How many times more bytes the rival moves over all links."""

    def find(evidence: Evidence) -> Found | None:
        for ours, theirs in pairs(evidence, multicast, rival)[:1]:
            moved = [median(sum(o.run.link_bytes.values()) for o in side) for side in (theirs, ours)]
            expected = [sum(side[0].run.link_bytes_theory.values()) for side in (theirs, ours)]
            if all(moved):
                return Found(_ratio(*expected), moved[0] / moved[1], [*ours, *theirs])
        return None

    return find


def sent(multicast: str, rival: str) -> Callable[[Evidence], Found | None]:
    """How many times more bytes a host sends, of the host that sends most."""

    def find(evidence: Evidence) -> Found | None:
        for ours, theirs in pairs(evidence, multicast, rival)[:1]:
            most = [median(max(o.run.host_tx_bytes.values(), default=0) for o in side) for side in (theirs, ours)]
            if all(most):
                return Found(float(ours[0].run.ranks - 1), most[0] / most[1], [*ours, *theirs])
        return None

    return find


def growth(algorithm: str) -> Callable[[Evidence], Found | None]:
    """How many times longer it takes with most ranks than with fewest, all else alike."""

    def find(evidence: Evidence) -> Found | None:
        alike: dict[tuple[float, int], list[Operation]] = {}
        for operation in evidence.counting:
            if operation.run.algorithm == algorithm and operation.scenario.loss == 0:
                key = (operation.scenario.link_rate_bps, operation.run.bytes_per_rank)
                alike.setdefault(key, []).append(operation)
        for _, group in sorted(alike.items(), key=lambda item: -item[0][1]):
            ranks = sorted({operation.run.ranks for operation in group})
            if len(ranks) > 1:
                few, many = ([o for o in group if o.run.ranks == count] for count in (ranks[0], ranks[-1]))
                ratio = median(o.seconds for o in many) / median(o.seconds for o in few)
                return Found(_busiest(many, few), ratio, [*few, *many])
        return None

    return find


def share(algorithm: str, phase: str, *, largest: bool) -> Callable[[Evidence], Found | None]:
    """The part of all receivers' time that a phase takes, at the largest or the smallest size."""

    def find(evidence: Evidence) -> Found | None:
        of_it = [o for o in evidence.counting if o.run.algorithm == algorithm and o.run.phases and o.scenario.loss == 0]
        if not of_it:
            return None
        ranks = max(operation.run.ranks for operation in of_it)
        sizes = {operation.run.bytes_per_rank for operation in of_it if operation.run.ranks == ranks}
        size = max(sizes) if largest else min(sizes)
        chosen = [o for o in of_it if (o.run.ranks, o.run.bytes_per_rank) == (ranks, size)]
        return Found(None, median(_part(operation, phase) for operation in chosen), chosen)

    return find


def _part(operation: Operation, phase: str) -> float:
    """Rank 0 is left out: as the root of a broadcast it waits in its handshake while all others receive."""
    spent = {name: sum(seconds[1:]) for name, seconds in operation.run.phases.items()}
    return spent.get(phase, 0.0) / (sum(spent.values()) or 1.0)


def _busiest(theirs: Sequence[Operation], ours: Sequence[Operation]) -> float | None:
    most = [max(side[0].run.link_bytes_theory.values(), default=0) for side in (theirs, ours)]
    return _ratio(*most)


def _ratio(one: float, other: float) -> float | None:
    return one / other if one and other else None


_RING = "run mcast_allgather and ring_allgather in one setting"
_TREES = "run mcast_broadcast and {} in one setting"
_RANKS = "run mcast_broadcast with several topologies at one rate"

COMPARISONS = (
    Comparison("Allgather: traffic of ring over multicast", "2 ×", READ, traffic("mcast_allgather", "ring_allgather"),
               _RING),
    Comparison("Allgather: bytes that a host sends, ring over multicast", "P - 1", "follows from the algorithms",
               sent("mcast_allgather", "ring_allgather"), _RING),
    Comparison("Allgather: time of ring over multicast", "about 1 × (both are bound by receiving)", MEMORY,
               times("mcast_allgather", "ring_allgather"), _RING),
    Comparison("Broadcast: traffic of binomial tree over multicast", "1.5 × to 2 × (Broadcast and Allgather)", DIGEST,
               traffic("mcast_broadcast", "binomial_broadcast"), _TREES.format("binomial_broadcast")),
    Comparison("Broadcast: time of k-nomial (here binomial) tree over multicast", "up to 1.3 ×", MEMORY,
               times("mcast_broadcast", "binomial_broadcast"), _TREES.format("binomial_broadcast")),
    Comparison("Broadcast: time of binary tree over multicast", "up to 4.75 ×", MEMORY,
               times("mcast_broadcast", "binary_tree_broadcast"), _TREES.format("binary_tree_broadcast")),
    Comparison("Broadcast: time of chain over multicast", "not compared", "",
               times("mcast_broadcast", "chain_broadcast"), _TREES.format("chain_broadcast")),
    Comparison("Broadcast by multicast: time with most ranks over fewest", "1 × (constant time)", NOTES,
               growth("mcast_broadcast"), _RANKS),
    Comparison("Broadcast by binomial tree: time with most ranks over fewest", "not told", "",
               growth("binomial_broadcast"), "run binomial_broadcast with several topologies at one rate"),
    Comparison("Broadcast: part of time in multicast, largest message", "above 0.99", MEMORY,
               share("mcast_broadcast", "multicast", largest=True), "run mcast_broadcast"),
    Comparison("Broadcast: part of time in the barrier, smallest message", "most of it", MEMORY,
               share("mcast_broadcast", "barrier", largest=False), "run mcast_broadcast"),
    Comparison("Broadcast: part of time in recovery without injected loss", "practically 0", MEMORY,
               share("mcast_broadcast", "recovery", largest=True), "run mcast_broadcast"),
    Comparison("Allgather and Reduce-Scatter at once", "2 ×", "read in its abstract", None,
               "not emulated: switches here cannot add, so there is no in-network Reduce-Scatter"),
    Comparison("Receive path offloaded to a NIC's processor", "1.6 Tbit/s with half its threads", READ, None,
               "not comparable: software on this machine says nothing about a NIC's threads"),
)  # fmt: skip
