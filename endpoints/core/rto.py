"""Retransmission timeout from measured round trips (RFC 6298), with a floor for hosts that sleep between batches."""

from __future__ import annotations

BACKOFF_LIMIT = 2
LARGEST = 16


class RetransmissionTimeout:
    """Smoothed round-trip time and its variation, in nanoseconds; doubles once on expiry.

    Losses alone never raise it above ``BACKOFF_LIMIT`` times the initial value, and deliberately so: the fabric is
    paced, and a link that loses a third of its packets must not be taken for a dead peer. Round trips do, however long
    they are. And an answer to what had been answered already says that nothing was lost and the timeout is too short
    (the idea of RFC 3522): queues are long, and repeating makes them longer. Each such sign doubles it, up to
    ``LARGEST`` times, until a clean round trip is measured.
    """

    def __init__(self, initial_ns: int, floor_ns: int, reorder_ns: int = 0) -> None:
        self._initial = initial_ns
        self._reorder = reorder_ns
        self._steps = 1
        self._floor = floor_ns
        self._smoothed: int | None = None
        self._variation = 0
        self._backoff = 1
        self._patience = 1
        self._slowed_at = 0

    def current(self) -> int:
        """The timeout to use now."""
        base = self._initial if self._smoothed is None else self._smoothed + 4 * self._variation
        clean = max(self._floor, base)
        return max(clean, min(clean * self._backoff, self._initial * BACKOFF_LIMIT)) * self._patience

    def reordering(self) -> int:
        """Nanoseconds that a packet may come behind one that was sent after it, and is not lost (RFC 8985, 6.2).

        A quarter of the round trip; more, up to the configured time, where answers that came twice show that it is
        too little.
        """
        return self._reorder if self._smoothed is None else min(self._reorder, self._smoothed // 4 * self._steps)

    def sample(self, round_trip_ns: int) -> None:
        """Take a round trip of something that was sent once (Karn's rule is the caller's)."""
        self._patience = 1
        if self._smoothed is None:
            self._smoothed, self._variation = round_trip_ns, round_trip_ns // 2
            return
        self._variation += (abs(self._smoothed - round_trip_ns) - self._variation) // 4
        self._smoothed += (round_trip_ns - self._smoothed) // 8

    def progress(self) -> None:
        """Something new was acknowledged: no more backoff."""
        self._backoff = 1

    def expired(self) -> None:
        """The timeout passed without progress."""
        self._backoff = min(self._backoff * 2, BACKOFF_LIMIT)

    def premature(self, now: int) -> None:
        """An answer came twice: what it answers was repeated too early. Counts once in the time of one timeout."""
        if now - self._slowed_at >= self.current():
            self._slowed_at = now
            self._patience = min(self._patience * 2, LARGEST)
            self._steps = min(self._steps * 2, LARGEST)
