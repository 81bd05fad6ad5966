"""Multicast streams: what one root sent over one tree in one operation, as it passed each captured point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from experiments.analysis.frames import Frames
from experiments.analysis.packets import I64
from experiments.analysis.trace import Trace, groups

BINS = 50
"""Most bins of a series of rates."""
_STEPS = (1, 2, 5)


class Key(NamedTuple):
    """A stream: operation, sending host, tree."""

    op: int
    root: int
    tree: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A stream at a point. ``frames`` are its first copies in the order of arrival; ``duplicates`` counts the others.

    ``reordered`` counts chunks that came after a later one (RFC 4737, 4.1.1), ``silence_ns`` is the longest time
    between two frames, ``missing`` what is expected and did not come.
    """

    key: Key
    point: int
    frames: Frames
    size: int
    last_ns: int
    duplicates: int
    reordered: int
    silence_ns: int
    missing: I64


def expected(trace: Trace) -> dict[Key, I64]:
    """The chunks of every stream, ascending: what the summary says, or else all between the lowest and the highest."""
    trees = len(np.unique(trace.chunks["tree"]))
    found: dict[Key, I64] = {}
    for (op, root, tree), its in groups(trace.chunks, "op", "src", "tree"):
        low, high = int(its["chunk"].min()), int(its["chunk"].max())
        found[Key(op, root, tree)] = np.arange(low, high + 1, trees)
    if trace.context is not None:
        for op in {key.op for key in found}:
            blocks = trace.context.blocks(op)
            if blocks is not None:
                for root in blocks.roots:
                    for tree in range(blocks.trees):
                        found[Key(op, root, tree)] = blocks.expected(root, tree)
    return dict(sorted(found.items()))


def passages(trace: Trace, chunks: Mapping[Key, I64]) -> list[Passage]:
    """Every stream at every point that it passed, by point, operation, root and tree."""
    found = []
    for (point, op, root, tree), its in groups(trace.chunks, "point", "op", "src", "tree"):
        key = Key(op, root, tree)
        times: I64 = its["time_ns"]
        firsts = its[np.sort(np.unique(its["chunk"], return_index=True)[1])]
        numbers = firsts["chunk"].astype(np.int64)
        highest = np.maximum.accumulate(numbers)
        found.append(
            Passage(
                key=key,
                point=point,
                frames=firsts,
                size=int(its["size"].sum()),
                last_ns=int(times[-1]),
                duplicates=len(its) - len(firsts),
                reordered=int(np.count_nonzero(numbers < highest)),
                silence_ns=int(np.diff(times).max(initial=0)),
                missing=np.setdiff1d(chunks[key], numbers, assume_unique=True),
            )
        )
    return found


def bin_width(span_ns: int) -> int:
    """The width in ns, 1, 2 or 5 times a power of ten, that cuts a span into at most :data:`BINS` bins."""
    scale = 1
    while True:
        for step in _STEPS:
            if span_ns // (step * scale) < BINS:
                return step * scale
        scale *= 10


def rates(frames: Frames, begin_ns: int, end_ns: int, width_ns: int) -> I64:
    """Bits per second on the wire in each bin from ``begin_ns`` up to the one that holds ``end_ns``."""
    bins = (frames["time_ns"] - begin_ns) // width_ns
    sums = np.bincount(bins, frames["size"].astype(np.float64), int((end_ns - begin_ns) // width_ns) + 1)
    return np.round(sums * 8e9 / width_ns).astype(np.int64)
