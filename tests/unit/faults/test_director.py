from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from experiments.errors import EnvironmentMissing, ExperimentFailed
from experiments.faults.book import Book, State
from experiments.faults.director import Director
from experiments.faults.fault import Fault, parse_fault
from experiments.faults.timeline import Clear, Moment, Step
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
BOUND_S = 30.0


def fault(words: str) -> Fault:
    return parse_fault(words, FABRIC)


class Fake:
    """Takes what happens at hosts; tells what it was asked to do."""

    name = "fake"

    def __init__(self, refuses: str = "") -> None:
        self.done: list[tuple[str, int]] = []
        self._refuses = refuses
        self._news = threading.Condition()

    def takes(self, fault: Fault) -> bool:
        return fault.target == "host"

    def apply(self, number: int, fault: Fault) -> None:
        if self._refuses:
            raise ExperimentFailed(self._refuses)
        self._note("apply", number)

    def observe(self, number: int) -> Mapping[str, int]:
        return {"packets": 10, "struck": number}

    def clear(self, number: int) -> Mapping[str, int]:
        self._note("clear", number)
        return {"packets": 20, "struck": number}

    def _note(self, what: str, number: int) -> None:
        with self._news:
            self.done.append((what, number))
            self._news.notify_all()

    def wait_for(self, count: int) -> list[tuple[str, int]]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.done) >= count, BOUND_S), self.done
            return self.done


def test_a_timeline_is_carried_out_in_its_order_once_its_operation_begins() -> None:
    steps = [
        Step(Moment(2_000_000), fault("host h1 rx drop 5% for 1ms")),
        Step(Moment(0), fault("host h2 rx drop 5%")),
        Step(Moment(4_000_000), Clear(2)),
    ]
    mechanism = Fake()
    with Director(Book(steps), [mechanism]) as director:
        director.operation_begins(time.monotonic_ns())
        done = mechanism.wait_for(4)
        assert done[:2] == [("apply", 2), ("apply", 1)]
        assert set(done[2:]) == {("clear", 1), ("clear", 2)}, "a duration counts from when the fault was in force"
    assert [entry.state for entry in director.finish()] == [State.EXPIRED, State.CLEARED]


def test_leaving_ends_what_is_in_force_and_misses_what_has_not_come() -> None:
    mechanism = Fake()
    with Director(Book([Step(Moment(0), fault("host h1 rx drop 5%"))]), [mechanism]) as director:
        director.add(fault("host h2 rx drop 5%"))
        assert director.entries()[1].observed == {"packets": 10, "struck": 2}
    missed, kept = director.finish()
    assert (missed.state, kept.state) == (State.MISSED, State.KEPT)
    assert kept.observed == {"packets": 20, "struck": 2}
    assert mechanism.done == [("apply", 2), ("clear", 2)]


def test_what_cannot_be_put_in_is_told_to_who_asked_and_kept_in_the_book() -> None:
    with Director(Book(), [Fake(refuses="the endpoint has ended")]) as director:
        with pytest.raises(ExperimentFailed, match="the endpoint has ended"):
            director.add(fault("host h1 rx drop 5%"))
        with pytest.raises(EnvironmentMissing, match="nothing on this machine"):
            director.add(fault("switch a10 down"))
        assert [entry.state for entry in director.entries()] == [State.REFUSED, State.REFUSED]


def test_a_step_that_cannot_be_carried_out_does_not_stop_the_others() -> None:
    steps = [Step(Moment(0), fault("switch a10 down")), Step(Moment(1_000_000), fault("host h1 rx drop 5%"))]
    mechanism = Fake()
    with Director(Book(steps), [mechanism]) as director:
        director.operation_begins(time.monotonic_ns())
        mechanism.wait_for(1)
        assert director.clear(2).state is State.CLEARED
    assert [entry.state for entry in director.finish()] == [State.REFUSED, State.CLEARED]
