"""What becomes of each packet of a batch: the columns that impairments write and the impairer carries out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bool = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Fates:
    """Columns of shape (n,).

    ``length`` of the frame in bytes, which is given; ``copies`` to hand on, 0 if it is lost; ``hold_ns`` until then;
    ``hold_packets`` after which it goes sooner, 0 for none; ``flip``, a bit to invert counted from the frame's first,
    -1 for none.
    """

    length: I64
    copies: I64
    hold_ns: I64
    hold_packets: I64
    flip: I64

    @classmethod
    def unharmed(cls, length: I64) -> Fates:
        """Every packet goes on at once, once, as it is."""
        zeros = np.zeros(len(length), np.int64)
        return cls(length, zeros + 1, zeros, zeros.copy(), zeros - 1)
