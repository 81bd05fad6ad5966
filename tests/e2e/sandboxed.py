"""Runs a function of a test inside the sandbox of a real run, and brings back its result or its traceback."""

from __future__ import annotations

import os
import pickle
import shutil
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from experiments.sandbox import run_in_sandbox
from topo.probe import probe

T = TypeVar("T")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip, saying why, where root or one of ``programs`` is missing."""
    lacking = [program for program in programs if shutil.which(program) is None]
    reasons = [*(["needs root"] if os.geteuid() != 0 else []), *(f"needs {program}" for program in lacking)]
    return pytest.mark.skipif(bool(reasons), reason=", ".join(reasons))


@cache
def datapath_type() -> str:
    """The datapath that a run on this machine would use, in Open vSwitch's words."""
    return probe().datapath_type


def in_sandbox(folder: Path, action: Callable[[Path], T]) -> T:
    """The result of ``action(rundir)`` in namespaces of its own; ``rundir`` is empty. Results travel pickled."""
    rundir, answer = folder / "run", folder / "answer"
    rundir.mkdir()

    def main() -> int:
        try:
            outcome: tuple[bool, Any] = (True, action(rundir))
        except BaseException:  # noqa: BLE001  # whatever it is, the test is told
            outcome = (False, traceback.format_exc())
        answer.write_bytes(pickle.dumps(outcome))
        return 0

    status = run_in_sandbox(main, rundir)
    if not answer.exists():
        pytest.fail(f"the sandbox ended with status {status} and without an answer")
    good, value = pickle.loads(answer.read_bytes())
    if not good:
        pytest.fail(f"in the sandbox:\n{value}", pytrace=False)
    return value
