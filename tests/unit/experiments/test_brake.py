"""A process with a brake is stopped and goes on, again and again, until it is released."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.brake import Brake

BOUND_S = 20.0
"""Far beyond what anything here takes."""


def state(pid: int) -> str:
    """The state of a process, by proc(5): T is stopped, S sleeps, Z has ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def comes(pid: int, wanted: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while state(pid) not in wanted:
        assert time.monotonic() < deadline, f"it is {state(pid)}, and never was {wanted}"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_it_is_stopped_and_goes_on_until_it_is_released(sleeper: subprocess.Popen[bytes]) -> None:
    brake = Brake([sleeper.pid], 0.5, lambda: False)
    for wanted in "TSTS":
        comes(sleeper.pid, wanted)
    brake.release()
    assert state(sleeper.pid) == "S"


def test_what_is_held_for_another_reason_stays_stopped(sleeper: subprocess.Popen[bytes]) -> None:
    brake = Brake([sleeper.pid], 0.5, lambda: True)
    comes(sleeper.pid, "T")
    brake.release()
    assert state(sleeper.pid) == "T"


def test_a_process_that_has_ended_needs_no_brake(sleeper: subprocess.Popen[bytes]) -> None:
    brake = Brake([sleeper.pid], 0.5, lambda: False)
    sleeper.kill()
    sleeper.wait()
    brake.release()
