"""Frames on their way through an impairer: who goes on now, who waits, and who has waited enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from endpoints.core.packets import U8
from endpoints.impairments.fates import I64, Fates

Lengths = npt.NDArray[Any]
Part = tuple[U8, Lengths]
"""Frames of shape (n, stride) and the length of each."""


@dataclass(slots=True)
class _Held:
    """A frame that waits, in as many copies as it has; ``behind`` the number of the packet that must have passed."""

    part: Part
    behind: int | None
    gone: bool = False


class Holding:
    """Packets are numbered in the order in which they come, starting with 0."""

    def __init__(self) -> None:
        self._passed = 0
        self._by_time: list[tuple[int, int, _Held]] = []
        self._by_count: list[_Held] = []
        self._serial = 0

    def sort_out(self, frames: U8, lengths: Lengths, fates: Fates | None, now_ns: int) -> list[Part]:
        """Hold what is to be held; the rest and what it has overtaken far enough, in order, then what is due anyway."""
        first = self._passed
        self._passed += len(lengths)
        if fates is None and not self._by_time:
            return [(frames, lengths)]
        rows = np.arange(len(lengths)) if fates is None else self._hold(frames, lengths, fates, first, now_ns)
        parts: list[Part] = []
        start = 0
        for held in self._overtaken():
            stop = int(np.searchsorted(rows, (held.behind or 0) - first, side="right"))
            parts += _runs(frames, lengths, rows[start:stop])
            parts.append(held.part)
            start = stop
        parts += _runs(frames, lengths, rows[start:])
        return _together(parts + self._waited(now_ns))

    def due(self, now_ns: int) -> list[Part]:
        """What has waited until ``now_ns``, earliest first; frames of one stride together."""
        return _together(self._waited(now_ns))

    def _waited(self, now_ns: int) -> list[Part]:
        found: list[Part] = []
        while self._by_time and self._by_time[0][0] <= now_ns:
            held = heappop(self._by_time)[2]
            if not held.gone:
                found.append(held.part)
                self._leave(held)
        return found

    def next_timeout(self) -> int | None:
        """When the next one has waited long enough."""
        while self._by_time and self._by_time[0][2].gone:
            heappop(self._by_time)
        return self._by_time[0][0] if self._by_time else None

    def waiting(self) -> Iterator[U8]:
        """What is held back now: the frames of one packet, one for each of its copies, at a time."""
        return (held.part[0] for _, _, held in self._by_time if not held.gone)

    def _hold(self, frames: U8, lengths: Lengths, fates: Fates, first: int, now_ns: int) -> I64:
        """Take away what is to be held; the rows of all others, each as often as there are copies of it."""
        waits = (fates.hold_ns > 0) & (fates.copies > 0)
        for row in np.flatnonzero(waits).tolist():
            copies = [row] * int(fates.copies[row])
            count = int(fates.hold_packets[row])
            held = _Held((frames[copies], lengths[copies]), first + row + count if count else None)
            heappush(self._by_time, (now_ns + int(fates.hold_ns[row]), self._serial, held))
            self._serial += 1
            if count:
                self._by_count.append(held)
        rows: I64 = np.repeat(np.arange(len(lengths)), np.where(waits, 0, fates.copies))
        return rows

    def _overtaken(self) -> list[_Held]:
        """Those that enough packets have passed, in the order in which they leave."""
        ready = [held for held in self._by_count if held.behind is not None and held.behind < self._passed]
        ready.sort(key=lambda held: held.behind or 0)
        for held in ready:
            self._leave(held)
        return ready

    def _leave(self, held: _Held) -> None:
        held.gone = True
        if held.behind is not None:
            self._by_count.remove(held)


def _runs(frames: U8, lengths: Lengths, rows: I64) -> list[Part]:
    """Those rows as views of neighbours, for :func:`_together` to copy once if need be."""
    cuts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
    spans = [(int(rows[a]), int(rows[a]) + b - a) for a, b in pairwise(cuts) if a < b]
    return [(frames[first:stop], lengths[first:stop]) for first, stop in spans]


def _together(parts: list[Part]) -> list[Part]:
    """The same frames in the same order, in as few parts as strides allow: decoding a part costs more than copying."""
    groups = groupby(parts, key=lambda part: part[0].shape[1])
    return [_join(list(group)) for _, group in groups]


def _join(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([frames for frames, _ in parts]), np.concatenate([lengths for _, lengths in parts])
