"""Which multicast chunks were lost where: what one captured point saw and the next one on the way did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from experiments.analysis.packets import I64
from experiments.analysis.paths import Paths
from experiments.analysis.reads import Arrivals, Recovery
from experiments.analysis.streams import Key, Passage
from experiments.analysis.trace import Trace


class Place(Enum):
    """Where chunks were lost, as far as the captures can tell."""

    SENDER = "sender"
    """They never were on their root's own link: lost before it, inside the host."""
    FABRIC = "fabric"
    """Between two captured points, or on the unobserved way to the first one."""
    RECEIVER = "receiver"
    """They were on the receiver's own link and it had to READ them nevertheless: lost behind it, inside the host."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Chunks of one stream that were lost together.

    ``after`` is the last point that saw them, None if none did; ``before`` the first that did not, or the receiver's
    own for :attr:`Place.RECEIVER`.
    """

    key: Key
    place: Place
    after: int | None
    before: int
    chunks: I64


def losses(
    trace: Trace, chunks: Mapping[Key, I64], passed: Sequence[Passage], recovered: Sequence[Recovery]
) -> list[Loss]:
    """Every loss that the captures show, by stream."""
    found = [*_on_the_way(trace, chunks, passed), *_inside_receivers(trace, recovered)]
    return sorted(found, key=lambda loss: (loss.key, loss.before, -1 if loss.after is None else loss.after))


def _on_the_way(trace: Trace, chunks: Mapping[Key, I64], passed: Sequence[Passage]) -> Iterator[Loss]:
    paths = Paths(trace.points, trace.context.scenario.fabric if trace.context else None)
    carriers: dict[tuple[int, int], set[int]] = {}
    seen: dict[Key, dict[int, Passage]] = {}
    for passage in passed:
        carriers.setdefault(passage.key[1:], set()).add(passage.point)
        seen.setdefault(passage.key, {})[passage.point] = passage
    for key, wanted in chunks.items():
        here = seen.get(key, {})
        anywhere = _first_times(list(here.values()))
        hosts = {at for at, point in enumerate(trace.points) if point.host is not None}
        for at in sorted(hosts | here.keys()):
            lost = _missing(trace, at, here.get(at), wanted, anywhere)
            before = paths.upstream(key.root, at, carriers.get(key[1:], ()))
            if before is not None:
                lost = lost[~np.isin(lost, _missing(trace, before, here.get(before), wanted, anywhere))]
            if len(lost):
                place = Place.SENDER if trace.points[at].host == key.root else Place.FABRIC
                yield Loss(key, place, before, at, lost)


def _first_times(passed: Sequence[Passage]) -> tuple[I64, I64]:
    """The chunks that were seen at any point, ascending, and when first."""
    if not passed:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers = np.concatenate([passage.frames["chunk"] for passage in passed]).astype(np.int64)
    times = np.concatenate([passage.frames["time_ns"] for passage in passed])
    order = np.lexsort((times, numbers))
    unique, first = np.unique(numbers[order], return_index=True)
    return unique, times[order][first]


def _missing(trace: Trace, at: int, passage: Passage | None, wanted: I64, anywhere: tuple[I64, I64]) -> I64:
    """What did not come by a point while it was captured."""
    point = trace.points[at]
    came = np.zeros(0, np.int64) if passage is None else passage.frames["chunk"]
    missing = np.setdiff1d(wanted, came, assume_unique=True)
    numbers, times = anywhere
    elsewhere = np.isin(missing, numbers)
    when = times[np.searchsorted(numbers, missing[elsewhere])]
    judged = np.ones(len(missing), np.bool_)
    judged[elsewhere] = (when >= point.first_ns) & (when <= point.last_ns)
    if point.cut:
        judged &= elsewhere | (missing < came.max(initial=0))
    return missing[judged]


def _inside_receivers(trace: Trace, recovered: Sequence[Recovery]) -> Iterator[Loss]:
    arrivals = Arrivals(trace)
    for recovery in recovered:
        found = arrivals.fates(recovery)
        blocks = None if trace.context is None else trace.context.blocks(recovery.op)
        if found is None or blocks is None:
            continue
        at = next(at for at, point in enumerate(trace.points) if point.host == recovery.requester)
        by_stream: dict[tuple[int, int], list[int]] = {}
        for chunk in found.dropped.tolist():
            by_stream.setdefault(blocks.root_and_tree(chunk), []).append(chunk)
        for (root, tree), its in by_stream.items():
            yield Loss(Key(recovery.op, root, tree), Place.RECEIVER, at, at, np.array(its, np.int64))
