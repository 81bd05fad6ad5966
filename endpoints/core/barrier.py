"""Dissemination barrier: in round k, tell rank + 2^k and wait for rank - 2^k (Hensgen, Finkel, Manber 1988).

After ceil(log2 P) rounds everyone has, through others, heard of everyone. It stands before the first multicast because
a datagram that meets a receiver without posted buffers is lost (PAPER 1.4).
"""

from __future__ import annotations

from collections.abc import Callable


class Barrier:
    """One passage of one rank; ``tell(peer, round)`` sends a reliable message."""

    def __init__(self, rank: int, size: int, tell: Callable[[int, int], None]) -> None:
        self._rank = rank
        self._size = size
        self._tell = tell
        self._round = 0
        self._heard: set[int] = set()

    @property
    def rounds(self) -> int:
        """Rounds that it takes."""
        return (self._size - 1).bit_length()

    @property
    def passed(self) -> bool:
        """Whether everyone is known to have arrived."""
        return self._round == self.rounds

    @property
    def waiting_for(self) -> int | None:
        """The rank whose message is awaited, None once passed."""
        return None if self.passed else (self._rank - (1 << self._round)) % self._size

    def start(self) -> None:
        """Arrive."""
        self._tell_round()
        self._advance()

    def hear(self, round_: int) -> None:
        """The message of a round came in; rounds may come early."""
        self._heard.add(round_)
        self._advance()

    def _tell_round(self) -> None:
        if not self.passed:
            self._tell((self._rank + (1 << self._round)) % self._size, self._round)

    def _advance(self) -> None:
        while not self.passed and self._round in self._heard:
            self._round += 1
            self._tell_round()
