"""The retransmission timeout: measured round trips, backoff within bounds, and signs that it is too short."""

from __future__ import annotations

from endpoints.core.rto import BACKOFF_LIMIT, LARGEST, RetransmissionTimeout

INITIAL, FLOOR = 66, 50


def test_losses_alone_raise_it_no_further_than_twice_the_initial_value() -> None:
    rto = RetransmissionTimeout(INITIAL, FLOOR)
    for _ in range(10):
        rto.expired()
    assert rto.current() == BACKOFF_LIMIT * INITIAL
    rto.progress()
    assert rto.current() == INITIAL


def test_round_trips_raise_it_however_long_they_are() -> None:
    """Where queues are longer than twice the initial timeout, a limit would have everything sent twice for ever."""
    rto = RetransmissionTimeout(INITIAL, FLOOR)
    for _ in range(20):
        rto.sample(10 * INITIAL)
    assert rto.current() >= 10 * INITIAL
    rto.expired()
    assert rto.current() >= 10 * INITIAL


def test_short_round_trips_end_at_the_floor() -> None:
    rto = RetransmissionTimeout(INITIAL, FLOOR)
    for _ in range(20):
        rto.sample(1)
    assert rto.current() == FLOOR


def test_answers_to_what_was_answered_double_it_once_in_its_time() -> None:
    rto = RetransmissionTimeout(INITIAL, FLOOR)
    rto.premature(INITIAL)
    rto.premature(INITIAL + 1)
    assert rto.current() == 2 * INITIAL
    for now in range(1, 50):
        rto.premature(now * 100 * INITIAL)
    assert rto.current() == LARGEST * INITIAL
    rto.sample(INITIAL)
    assert rto.current() < LARGEST * INITIAL
