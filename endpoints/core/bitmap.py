"""Which chunks are here: one bit per chunk (PAPER: section on receive bitmaps; 1/32768 of the buffer at 4 KiB)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
_ONE = np.uint64(1)
_BIT = _ONE << np.arange(64, dtype=np.uint64)


class Bitmap:
    """``size`` bits in 64-bit words, all clear at first. ``missing`` counts the clear ones."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.missing = size
        self._words = np.zeros((size + 63) // 64, np.uint64)

    def mark(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Set the bits ``ids`` (shape (n,)); true where a bit was clear and this is its first mention in ``ids``."""
        word = ids >> 6
        bit = _BIT[ids & 63]
        fresh: npt.NDArray[np.bool_] = (self._words[word] & bit) == 0
        if len(set(ids.tolist())) != len(ids):
            first = np.zeros(len(ids), np.bool_)
            first[np.unique(ids, return_index=True)[1]] = True
            fresh &= first
        np.bitwise_or.at(self._words, word, bit)
        self.missing -= int(np.count_nonzero(fresh))
        return fresh

    def mark_range(self, first: int, stop: int) -> None:
        """Set the bits ``first .. stop - 1``."""
        if stop > first:
            self.mark(np.arange(first, stop, dtype=np.int64))

    def mark_one(self, chunk: int) -> bool:
        """Set one bit; true if it was clear."""
        if chunk in self:
            return False
        self._words[chunk >> 6] |= _BIT[chunk & 63]
        self.missing -= 1
        return True

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each of ``ids`` is set."""
        found: npt.NDArray[np.bool_] = (self._words[ids >> 6] >> (ids & 63).astype(np.uint64)) & _ONE != 0
        return found

    def __contains__(self, chunk: int) -> bool:
        return bool((int(self._words[chunk >> 6]) >> (chunk & 63)) & 1)

    def bits(self) -> npt.NDArray[np.bool_]:
        """All bits as booleans, shape (size,)."""
        octets = self._words.view(np.uint8)
        return np.unpackbits(octets, bitorder="little", count=self.size).astype(np.bool_)

    def gaps(self) -> list[tuple[int, int]]:
        """Maximal runs of clear bits as (first, stop), ascending."""
        return runs(~self.bits()) if self.missing else []


def runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Maximal runs of true values as (first, stop), ascending."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True))
