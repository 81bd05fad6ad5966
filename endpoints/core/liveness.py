"""When the peer of a reliable connection counts as lost."""

from __future__ import annotations

DEAF = 3
"""Peer timeouts after which a peer counts as lost that sends but does not answer."""


class Liveness:
    """What a requester knows of its peer: when it was heard last, and when it last answered; times in nanoseconds."""

    def __init__(self, timeout_ns: int) -> None:
        self._timeout = timeout_ns
        self._heard_at = 0
        self._answered_at = 0

    def heard(self, now: int) -> None:
        """The peer has sent something, by whatever way: it lives."""
        self._heard_at = now

    def answered(self, now: int) -> None:
        """The peer has answered something new, or its time to answer starts here."""
        self._answered_at = now

    def lost(self, now: int) -> bool:
        """Nothing is answered and nothing comes: dead. Nothing is answered although something comes: it is deaf."""
        stalled, silent = now - self._answered_at, now - self._heard_at
        return (stalled >= self._timeout and silent >= self._timeout) or stalled >= DEAF * self._timeout
