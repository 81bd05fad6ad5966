"""What an application asks of its NIC over the connection, and the answers.

Commands of ``io.commands`` go over it, too: ``HostSetup``, ``Regroup`` (both answered with ``Ready``) and ``Stop``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Register:
    """Map ``length`` bytes of the file whose descriptor follows, as ``key``; answered ``Ready`` or :class:`Refused`."""

    key: int
    length: int


@dataclass(frozen=True, slots=True)
class Deregister:
    """Let go of ``key``; not answered. Work that is under way keeps what it uses."""

    key: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End work ``number`` where it is, or all if None, and flush what has not begun; not answered."""

    number: int | None
    reason: str
    suspect: int | None = None


@dataclass(frozen=True, slots=True)
class AskResult:
    """The ``RankResult`` of work ``number``, one of the last to have ended, as of now; None if there is none."""

    number: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Why not."""

    reason: str
