"""The search for the highest link rate at which a fabric's emulation is true on this machine: bisection over a grid.

It assumes what an overload is: whatever rate is too much, every higher one is, too. Pure.
"""

from __future__ import annotations

from math import ceil, log2

RATES_MBPS = (
    *(1, 2, 3, 4, 5, 7, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 90, 100),
    *(120, 150, 200, 250, 300, 400, 500, 750, 1000),
)
"""Rates that are tried: steps of a tenth or so where small machines are, coarser beyond."""

OPERATION_S = 2.0
"""Length of an operation at the limit: long enough that a start does not count, short enough to try several rates."""


class Search:
    """Bisection over ``rates``, ascending; ``guess`` is tried first, since most machines are alike."""

    def __init__(self, rates: tuple[int, ...] = RATES_MBPS, guess: int = 50) -> None:
        self._rates = rates
        self._valid = -1
        """Index of the highest rate found valid; -1 for none so far."""
        self._invalid = len(rates)
        """Index of the lowest rate found not valid."""
        self._guess: int | None = min(range(len(rates)), key=lambda i: abs(rates[i] - guess))

    @property
    def _middle(self) -> int:
        return self._guess if self._guess is not None else (self._valid + self._invalid) // 2

    def next(self) -> int | None:
        """The rate to try, in Mbit/s; None when the search is over."""
        return self._rates[self._middle] if self._invalid - self._valid > 1 else None

    def record(self, *, valid: bool) -> None:
        """What came of the rate that :meth:`next` gave."""
        if valid:
            self._valid = self._middle
        else:
            self._invalid = self._middle
        self._guess = None

    @property
    def best(self) -> int | None:
        """The highest valid rate so far, in Mbit/s."""
        return self._rates[self._valid] if self._valid >= 0 else None

    @property
    def tries_left(self) -> int:
        """At most so many more."""
        open_ = self._invalid - self._valid - 1
        return ceil(log2(open_ + 1)) + (self._guess is not None)


def size_bytes(rate_mbps: int, ranks: int, mtu: int) -> int:
    """Bytes per rank for which an Allgather takes :data:`OPERATION_S` at the limit, in whole chunks, at least 16."""
    whole = rate_mbps * 1e6 * OPERATION_S / 8 / max(1, ranks - 1)
    return max(16, int(whole // mtu)) * mtu
