"""Processes that are slow: they are stopped for a share of every period, and go on for the rest, as cpulimit has it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence

PERIOD_S = 0.1
"""Longer than a nap of an endpoint, and far shorter than anybody's patience."""


class Brake:
    """Stops the processes ``pids`` for ``share`` of the time, from now on until they are released.

    ``held`` says whether they are to stay stopped for another reason.
    """

    def __init__(self, pids: Sequence[int], share: float, held: Callable[[], bool]) -> None:
        self._pids = tuple(pids)
        self._share = share
        self._held = held
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"brake {self._pids[0]}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let them go on, unless they are held."""
        self._released.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._released.wait(PERIOD_S * (1 - self._share)):
                self._tell(signal.SIGSTOP)
                self._released.wait(PERIOD_S * self._share)
                if not self._held():
                    self._tell(signal.SIGCONT)
        except ProcessLookupError:
            return  # one has ended, and whoever waits for it says so

    def _tell(self, number: signal.Signals) -> None:
        for pid in self._pids:
            os.kill(pid, number)
