"""Work side by side: every process has its say, and one that fails is not passed over."""

from __future__ import annotations

import os

import pytest

from experiments.bench.workers import side_by_side


def test_each_process_answers_from_the_core_it_is_on() -> None:
    core = min(os.sched_getaffinity(0))
    answers = side_by_side(lambda: float(*os.sched_getaffinity(0)), [core, core])
    assert answers == [core, core]


def test_a_process_that_ends_without_an_answer_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="without an answer"):
        side_by_side(lambda: 1 / 0, [min(os.sched_getaffinity(0))])
    assert "ZeroDivisionError" in capfd.readouterr().err
