"""One result of several: of rounds, which run one after the other, and of workers, which run side by side. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from endpoints.core.states import Phase
from endpoints.io.commands import PHASES, RankResult
from endpoints.io.live_faults import Way

_ORDER = {phase.value: place for place, phase in enumerate(PHASES)}
_DONE, _FAILED = Phase.DONE.value, Phase.FAILED.value

Timeline = Sequence[tuple[str, int]]


def in_turn(rounds: Sequence[RankResult]) -> RankResult:
    """The rounds of one worker, in order: they fail with the first that does, and the phases come again."""
    phases = [entered for result in rounds for entered in result.phases]
    return replace(_together(rounds), phases=phases)


def side_by_side(workers: Sequence[RankResult]) -> RankResult:
    """The workers of one NIC: it is in the phase of whichever is least far, and as busy as all together."""
    return replace(_together(workers), phases=least_far([result.phases for result in workers]))


def least_far(timelines: Sequence[Timeline]) -> list[tuple[str, int]]:
    """When all who go through the same phases had entered each; the first counts from the first of them.

    Where one failed, all have once the last has ended.
    """
    if any(line[-1][0] == _FAILED for line in timelines if line):
        timelines = [_failing(line) for line in timelines]
    moves = sorted((at, who, place) for who, line in enumerate(timelines) for place, at in _places(line))
    if not moves:
        return []
    first = min(place for _, _, place in moves)
    at_place = [first] * len(timelines)
    merged = [(PHASES[first[1]].value, moves[0][0])]
    reached = first
    for at, who, place in moves:
        at_place[who] = place
        if min(at_place) > reached:
            reached = min(at_place)
            merged.append((PHASES[reached[1]].value, at))
    return merged


def _failing(line: Timeline) -> Timeline:
    return [*line[:-1], (_FAILED, line[-1][1])] if line and line[-1][0] == _DONE else line


def _places(line: Timeline) -> list[tuple[tuple[int, int], int]]:
    """((round, place of the phase in the order of phases), time) of each phase entered."""
    places, round_ = [], 0
    for phase, at in line:
        places.append(((round_, _ORDER[phase]), at))
        round_ += phase == _DONE
    return places


def _together(parts: Sequence[RankResult]) -> RankResult:
    """Sums, the latest, the worst, and the first failure. The phases are left to be said."""
    counters: Counter[str] = Counter()
    held: Counter[tuple[Way, int]] = Counter()
    for part in parts:
        counters.update(part.counters)
        held.update(part.held)
    failures = [part.failure for part in parts if part.failure is not None]
    return replace(
        parts[0],
        failure=failures[0] if failures else None,
        counters=dict(counters),
        cpu_seconds=sum(part.cpu_seconds for part in parts),
        ring_dropped=sum(part.ring_dropped for part in parts),
        heard_at=max(part.heard_at for part in parts),
        late_ns=max(part.late_ns for part in parts),
        late_counts=tuple(map(sum, zip_longest(*(part.late_counts for part in parts), fillvalue=0))),
        hits=[hit for part in parts for hit in part.hits],
        held=dict(held),
    )
