"""The signals that ask a program to stop, and how each process of a run takes them.

One that works raises :class:`Interrupted` at the first, so that every ``finally`` runs, and lets later ones pass, so
that none cuts the tidying short. One that must not be interrupted holds them back for a moment.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from experiments.errors import Interrupted

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held() -> Iterator[None]:
    """Stop signals that arrive inside are delivered at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def raise_once() -> None:
    """From now on the first stop signal raises :class:`Interrupted` and later ones do nothing.

    Also for signals that were ignored before: call it where they are known to be meant for this process.
    """

    def first(number: int, _frame: FrameType | None) -> None:
        for stop in STOP:
            signal.signal(stop, _pass)
        raise Interrupted(signal.Signals(number).name)

    for stop in STOP:
        signal.signal(stop, first)


@contextmanager
def every_interrupt() -> Iterator[None]:
    """Inside, every SIGINT raises KeyboardInterrupt, for somebody who goes on after it; other stop signals stay."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


@contextmanager
def raising() -> Iterator[None]:
    """Stop signals raise :class:`Interrupted` inside, but for those that our caller has us ignore (nohup)."""
    before = {stop: signal.getsignal(stop) for stop in STOP}
    raise_once()
    for stop, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(stop, handler)
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """A handler, not SIG_IGN, since that would be handed down to the programs we start."""
