from __future__ import annotations

import pytest

from experiments.errors import UserError
from experiments.faults.book import Book, State, Task
from experiments.faults.fault import parse_fault
from experiments.faults.timeline import Clear, Moment, Step
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
S = 10**9


def fault(words: str = "link e00-a00 loss 2%"):
    return parse_fault(words, FABRIC)


def test_a_fault_put_in_by_hand_is_due_at_once_and_stays_until_it_is_cleared() -> None:
    book = Book()
    entry = book.add(fault(), 5 * S)
    assert book.due(5 * S) == [Task(5 * S, entry.number, None)]
    book.applied(entry.number, 6 * S)
    assert [live.number for live in book.live] == [1]
    assert book.next_due() is None
    ended = book.ended(entry.number, State.CLEARED, 9 * S)
    assert (ended.state, ended.applied_ns, ended.ended_ns) == (State.CLEARED, 6 * S, 9 * S)
    assert book.live == []


def test_a_duration_counts_from_the_moment_at_which_the_fault_was_in_force() -> None:
    book = Book()
    book.add(fault("switch a10 down for 3s"), 0)
    book.applied(1, 2 * S)
    assert book.next_due() == 5 * S
    assert book.due(5 * S - 1) == []
    assert book.due(5 * S) == [Task(5 * S, 1, State.EXPIRED)]


def test_steps_wait_for_the_operation_that_they_belong_to() -> None:
    book = Book([Step(Moment(S), fault()), Step(Moment(0, 2), fault("host h7 kill")), Step(Moment(2 * S, 2), Clear(1))])
    assert book.next_due() is None
    book.operation_begins(1, 10 * S)
    assert book.due(11 * S) == [Task(11 * S, 1, None)]
    book.applied(1, 11 * S)
    assert book.next_due() is None
    book.operation_begins(2, 20 * S)
    assert book.due(30 * S) == [Task(20 * S, 2, None), Task(22 * S, 1, State.CLEARED)]


def test_what_ends_goes_before_what_begins_at_the_same_time() -> None:
    book = Book([Step(Moment(0), fault("link e00-a00 rate 10 for 1s")), Step(Moment(S), fault("link e00-a00 rate 20"))])
    book.operation_begins(1, 0)
    book.applied(1, 0)
    assert [(task.number, task.ending) for task in book.due(S)] == [(1, State.EXPIRED), (2, None)]


def test_what_is_done_for_good_is_not_live_and_cannot_be_cleared() -> None:
    book = Book()
    book.add(fault("host h7 kill"), 0)
    assert book.applied(1, 1).state is State.DONE
    assert book.live == []
    with pytest.raises(UserError, match=r"fault 1 \(host h7 kill\): it is over, done"):
        book.ended(1, State.CLEARED, 2)


def test_a_fault_cleared_before_it_was_put_in_is_missed_and_no_longer_due() -> None:
    book = Book([Step(Moment(S), fault())])
    book.operation_begins(1, 0)
    assert book.ended(1, State.CLEARED, 0).state is State.MISSED
    assert book.due(9 * S) == []


def test_a_refused_fault_is_over_with_its_reason() -> None:
    book = Book()
    book.add(fault(), 0)
    entry = book.refused(1, "this kernel cannot")
    assert (entry.state, entry.why) == (State.REFUSED, "this kernel cannot")
    assert book.due(9 * S) == []


def test_numbers_that_do_not_exist_are_told_with_those_that_do() -> None:
    with pytest.raises(UserError, match="no fault 2: there are none"):
        Book().entry(2)
    book = Book()
    book.add(fault(), 0)
    with pytest.raises(UserError, match="no fault 2: they are 1 to 1"):
        book.ended(2, State.CLEARED, 0)


def test_moments_are_told_from_the_beginning_of_the_latest_operation() -> None:
    book = Book()
    assert book.moment(7 * S) == Moment(0)
    book.operation_begins(1, 10 * S)
    assert book.moment(12 * S) == Moment(2 * S)
    book.operation_ends()
    assert book.moment(15 * S) == Moment(0, 2), "between two it is the next"
    book.operation_begins(2, 20 * S)
    assert book.moment(21 * S) == Moment(S, 2)
    assert book.origin_ns == 10 * S
