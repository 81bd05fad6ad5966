"""What was done by hand becomes a scenario that does it again."""

from __future__ import annotations

import pytest

from experiments.console.history import scenario_of, steps_of
from experiments.errors import UserError
from experiments.faults.book import Book, Entry, State
from experiments.faults.fault import parse_fault
from experiments.faults.timeline import Step
from experiments.results import Run
from experiments.scenario import Scenario

CONSOLE = Scenario.of({"topology": "fattree,k=4", "rate_bps": "20M", "seed": 9, "name": "console"})
S = 10**9


def ran(size: int = 65536) -> Run:
    return Run(
        algorithm="mcast_allgather",
        iteration=1,
        ranks=16,
        bytes_per_rank=size,
        verified=True,
        seconds=1.0,
        limit_seconds=0.5,
        limit_ratio=0.5,
    )


def by_hand() -> list[Entry]:
    """Loss from the second operation on, cleared in the third, after a stop in the first and a fault that failed."""
    book = Book()
    book.operation_begins(1, 10 * S)
    book.add(parse_fault("host h7 stop for 1s", CONSOLE.fabric), 11 * S)
    book.applied(1, 11 * S)
    book.add(parse_fault("vswitchd kill", CONSOLE.fabric), 11 * S)
    book.refused(2, "it does not run")
    book.operation_ends()
    book.add(parse_fault("link e00-a00 loss 2%", CONSOLE.fabric), 20 * S)
    book.applied(3, 20 * S)
    book.operation_begins(2, 30 * S)
    book.ended(1, State.EXPIRED, 31 * S)
    book.operation_ends()
    book.operation_begins(3, 40 * S)
    book.ended(3, State.CLEARED, 40 * S + S // 2)
    return book.entries


def words(steps: list[Step]) -> list[str]:
    return [str(step) for step in steps]


def test_the_timeline_has_what_was_in_force_at_its_times_and_numbers_it_anew() -> None:
    assert words(steps_of(by_hand(), 3)) == [
        "at 1s: host h7 stop for 1s",
        "at 0s of operation 2: link e00-a00 loss 2%",
        "at 500ms of operation 3: clear 2",
    ]


def test_what_came_after_the_last_operation_is_left_out() -> None:
    assert words(steps_of(by_hand(), 1)) == ["at 1s: host h7 stop for 1s"]


def test_the_scenario_runs_the_same_operations_on_the_same_fabric_with_that_timeline() -> None:
    again = Scenario.of(scenario_of(CONSOLE, [ran(), ran(), ran()], by_hand()))
    assert (again.topology, again.rate_bps, again.seed) == (CONSOLE.topology, CONSOLE.rate_bps, CONSOLE.seed)
    assert (again.iterations, again.warmup, again.size_bytes) == (3, 0, 65536)
    assert words(list(again.timeline)) == words(steps_of(by_hand(), 3))


def test_what_no_scenario_can_repeat_is_told() -> None:
    with pytest.raises(UserError, match="no operation has been run yet"):
        scenario_of(CONSOLE, [], [])
    with pytest.raises(UserError, match="one kind and size; here were mcast_allgather of 65536 bytes, mcast_allg"):
        scenario_of(CONSOLE, [ran(), ran(1024)], [])
