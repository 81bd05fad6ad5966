"""Waiting for the answers of endpoints: who gives one, who has ended instead, and who is ended since none comes.

An endpoint that has not answered in time is ended before anybody goes on without it (fencing): it might be stopped, and
wake up among others that have stopped reckoning with it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Generic, TypeVar

from endpoints.io.commands import Command, Crashed
from endpoints.io.process import HostProcess
from experiments.errors import ExperimentFailed

LOOK_S = 0.1
END_S = 5.0
"""For a process to be collected that has closed its end of the pipe, or has been killed."""

T = TypeVar("T")


def send(host: HostProcess, command: Command) -> None:
    """Give a command. That the endpoint has ended is told by whoever waits for its answer."""
    with suppress(OSError):
        host.send(command)


def ending(exit_code: int | None, what: str = "endpoint") -> str:
    """How a process ended, by its exit code as ``multiprocessing`` has it: ``its endpoint was killed by SIGKILL``."""
    if exit_code is not None and exit_code < 0:
        with suppress(ValueError):
            return f"its {what} was killed by {signal.Signals(-exit_code).name}"
    return f"its {what} ended unasked with status {exit_code}"


def host_ending(host: HostProcess) -> str:
    """How a host's processes ended: an application without its NIC ends by itself, so it is the NIC that is asked."""
    host.process.join(END_S)
    if not host.offloaded:
        return ending(host.process.exitcode)
    for engine in host.engines:
        if engine.exitcode is not None and engine.exitcode < 0:
            return ending(engine.exitcode, "NIC")
    return ending(host.process.exitcode, "application")


class Muster(Generic[T]):
    """Waits for one answer of a ``kind`` from each of ``hosts``, which are by name.

    ``answers`` has those that came, ``gone`` says of the others how they ended. Whoever waits looks around every
    ``LOOK_S`` meanwhile, first at ``look_at`` (monotonic seconds).
    """

    def __init__(self, hosts: Mapping[str, HostProcess], kind: type[T], look_at: float = 0.0) -> None:
        self.answers: dict[str, T] = {}
        self.gone: dict[str, str] = {}
        self._kind = kind
        self._hosts = hosts
        self._waiting = {host.pipe: name for name, host in hosts.items()}
        self._look_at = look_at

    @property
    def waiting(self) -> list[str]:
        """Of whom there is no word yet."""
        return list(self._waiting.values())

    def wait(self, until: float | None = None, look: Callable[[], object] = lambda: None) -> list[str]:
        """Wait for some answers, not beyond ``until`` (monotonic seconds); of whom there is word now: nobody by then.

        ``look`` is called every ``LOOK_S``, at ``until`` and after the last answer, however many come: looking takes
        time from those who are still busy. What it raises is passed on, and the muster may go on.
        """
        news: list[str] = []
        while self._waiting and not news:
            wake = self._look_at if until is None else min(self._look_at, until)
            for pipe in wait(list(self._waiting), max(0.0, wake - time.monotonic())):
                name = self._waiting.pop(pipe)  # type: ignore[call-overload]
                self._hear(name)
                news.append(name)
            if not news or not self._waiting or time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + LOOK_S
                look()
            if until is not None and time.monotonic() >= until:
                break
        return news

    def fence(self) -> None:
        """End all who have not answered."""
        for name in self.waiting:
            for process in self._hosts[name].processes:
                process.kill()
                process.join(END_S)
            self.gone[name] = "its endpoint did not answer, and was ended"
        self._waiting.clear()

    def _hear(self, name: str) -> None:
        """Take the answer of a host; :class:`ExperimentFailed` with its last words if it crashed."""
        host = self._hosts[name]
        try:
            answer = host.pipe.recv()
        except (EOFError, OSError):
            self.gone[name] = host_ending(host)
            return
        if isinstance(answer, Crashed):
            sys.stderr.write(answer.trace)
            raise ExperimentFailed(f"the endpoint of {name} crashed: {answer.trace.splitlines()[-1]}")
        if not isinstance(answer, self._kind):
            raise ExperimentFailed(f"the endpoint of {name} answered {answer!r}")
        self.answers[name] = answer
