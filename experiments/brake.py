"""A process that is slow: it is stopped for a share of every period, and goes on for the rest, as cpulimit has it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

PERIOD_S = 0.1
"""Longer than a nap of an endpoint, and far shorter than anybody's patience."""


class Brake:
    """Stops process ``pid`` for ``share`` of the time, from now on until it is released.

    ``held`` says whether the process is to stay stopped for another reason.
    """

    def __init__(self, pid: int, share: float, held: Callable[[], bool]) -> None:
        self._pid = pid
        self._share = share
        self._held = held
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"brake {pid}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let it go on, unless it is held."""
        self._released.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._released.wait(PERIOD_S * (1 - self._share)):
                os.kill(self._pid, signal.SIGSTOP)
                self._released.wait(PERIOD_S * self._share)
                if not self._held():
                    os.kill(self._pid, signal.SIGCONT)
        except ProcessLookupError:
            return  # it has ended, and whoever waits for it says so
