"""What a reduction adds: elements of four bytes, little-endian in memory and on the wire."""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

from endpoints.core.packets import U8

ELEMENT_BYTES = 4


class Element(Enum):
    """The type of an element.

    Unsigned integers are added modulo 2^32, so that a sum is exact and the same in any order. A sum of floating-point
    numbers (IEEE 754 binary32) depends on the order, which the algorithm must fix.
    """

    UINT32 = "<u4"
    FLOAT32 = "<f4"

    def add(self, one: U8, other: U8, into: U8) -> None:
        """``into`` = ``one`` + ``other``, element by element: bytes side by side, of one length, aligned or not."""
        with np.errstate(all="ignore"):  # infinities and NaN are results like others
            np.add(self._of(one), self._of(other), out=self._of(into))

    def _of(self, data: U8) -> npt.NDArray[np.number]:
        return data.view(self.value)
