"""All timers of an operation in one enum and one table; a spurious call is harmless."""

from __future__ import annotations

from enum import Enum, auto


class Timer(Enum):
    """What an operation waits for."""

    CUTOFF = auto()
    """End of the fast path: expected duration and slack, or inactivity (PAPER 1.5)."""
    TOKEN = auto()
    """A root's own turn, if the token of its chain got lost with its bearer."""
    LOOK = auto()
    """The next look at what the fast path has lost so far."""
    PATIENCE = auto()
    """A supplier that does not supply."""
    DEADLINE = auto()
    """The bound on the whole operation, or on its barrier."""


class TimerTable:
    """Deadlines in absolute nanoseconds."""

    def __init__(self) -> None:
        self._deadlines: dict[Timer, int] = {}

    def set(self, timer: Timer, at: int) -> None:
        """Arm or re-arm."""
        self._deadlines[timer] = at

    def stop(self, timer: Timer) -> None:
        """Disarm; nothing happens if it was not armed."""
        self._deadlines.pop(timer, None)

    def clear(self) -> None:
        """Disarm all."""
        self._deadlines.clear()

    def next(self) -> int | None:
        """The earliest deadline."""
        return min(self._deadlines.values(), default=None)

    def expired(self, now: int) -> list[Timer]:
        """Disarm and return what is due, earliest first."""
        due = sorted((at, timer.value) for timer, at in self._deadlines.items() if at <= now)
        fired = [Timer(value) for _, value in due]
        for timer in fired:
            del self._deadlines[timer]
        return fired
