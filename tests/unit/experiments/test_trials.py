from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from experiments.chaos.trials import Trial, Trials, closing, outcome, trials_table


def trial(number: int, **changed: object) -> Trial:
    base = {
        "number": number,
        "faults": ["at 1s: host h3 kill"],
        "kinds": ["host kill"],
        "verified": True,
        "operation_seconds": 1.5,
        "seconds": 9.0,
        "again": f"treecast chaos --only {number}",
    }
    return Trial.model_validate(base | changed)


FAILED = {"verified": False, "error": "h3 seems to be at fault", "blamed": ["h3"]}
WRONG = FAILED | {"defect": "wrong bytes", "finding": "3 bytes are wrong"}


def trials(*found: Trial) -> Trials:
    return Trials(seed=7, topology="single,hosts=4", size_bytes=1, link_rate_bps=1, undrawn={}, trials=list(found))


def test_they_are_read_back_as_they_were_written() -> None:
    found = trials(trial(1), trial(2, **WRONG))
    assert Trials.model_validate_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("changed", "expected"), [({}, "verified"), (FAILED, "error: h3"), (FAILED | {"blamed": []}, "error")]
)
def test_the_outcome_says_whom_an_error_names(changed: dict[str, object], expected: str) -> None:
    assert outcome(trial(1, **changed)) == expected


def test_the_last_line_counts_how_runs_ended() -> None:
    assert closing(trials(trial(1), trial(2, **FAILED))) == (
        "2 runs with seed 7: 1 verified, 1 ended with the right error; no byte was wrong, and nothing is left of them"
    )
    assert closing(trials(trial(1, defect="something left behind"), trial(2, **WRONG))).endswith(
        "0 verified, 0 ended with the right error, 2 ended WRONG"
    )


def test_the_first_of_each_class_of_defect_is_kept() -> None:
    found = trials(trial(1), trial(2, **WRONG), trial(3, defect="not over in time"), trial(4, **WRONG))
    assert {defect: first.number for defect, first in found.first_of_each_class.items()} == {
        "wrong bytes": 2,
        "not over in time": 3,
    }


def test_the_table_has_a_line_for_each_run_with_its_kinds_counted() -> None:
    table = trials_table([trial(1, kinds=["host stop", "link down", "host stop"]), trial(2, **WRONG)])
    text = StringIO()
    Console(width=140, file=text).print(table)
    lines = text.getvalue().splitlines()
    assert any("host stop x2, link down" in line and "verified" in line and "right" in line for line in lines)
    assert any("error: h3" in line and "WRONG: wrong bytes" in line for line in lines)
