"""The sandbox's first process: no stop signal is lost, whenever it comes, and whoever ends is collected.

They run among the tests that come one after the other: another thread of the process would take the signal.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from experiments import sandbox, signals

BOUND_S = 30
"""After which a process that nobody stops is ended by the kernel."""


@pytest.fixture(autouse=True)
def as_in_init() -> Iterator[None]:
    """The signals as init holds them, and as they were again behind it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    handler = signal.getsignal(signal.SIGCHLD)
    with signals.held():
        yield
    signal.signal(signal.SIGCHLD, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def forked(action: Callable[[], int]) -> int:
    """The pid of a process that does ``action`` and ends with its result."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(BOUND_S)
        os._exit(action())
    return pid


@pytest.mark.parametrize("number", signals.STOP)
def test_a_stop_signal_in_the_instant_before_waiting_is_passed_on(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instant after the last look at what has ended: a handler that runs now, or never, must make no difference."""
    pid = forked(lambda: 7 if signal.sigwait(set(signals.STOP)) == number else 1)
    look = os.waitpid
    struck: list[signal.Signals] = []

    def look_and_be_struck(who: int, options: int) -> tuple[int, int]:
        seen = look(who, options)
        if seen[0] == 0 and not struck:
            struck.append(number)
            assert number in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "it waits to be asked for"
            os.kill(os.getpid(), number)
        return seen

    monkeypatch.setattr(os, "waitpid", look_and_be_struck)
    assert os.waitstatus_to_exitcode(sandbox._tend(pid)) == 7
    assert struck == [number]


def test_an_end_before_anybody_waited_for_it_is_noticed() -> None:
    pid = forked(lambda: 5)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert os.waitstatus_to_exitcode(sandbox._tend(pid)) == 5


def test_ends_that_come_together_are_all_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    pid = forked(lambda: 3 if signal.sigwait(set(signals.STOP)) else 1)
    others = [forked(lambda: 0) for _ in range(5)]
    for other in others:
        os.waitid(os.P_PID, other, os.WEXITED | os.WNOWAIT)
    look = os.waitpid

    def stop_when_all_are_seen(who: int, options: int) -> tuple[int, int]:
        seen = look(who, options)
        if seen[0] == 0:
            os.kill(pid, signal.SIGTERM)
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(os, "waitpid", stop_when_all_are_seen)
        assert os.waitstatus_to_exitcode(sandbox._tend(pid)) == 3
    for other in others:
        with pytest.raises(ChildProcessError):
            os.waitpid(other, os.WNOHANG)


def test_a_killed_main_process_is_told_by_its_status() -> None:
    pid = forked(lambda: signal.sigwait(set(signals.STOP)))
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(sandbox._tend(pid)) == -signal.SIGKILL
