"""What is said of several rounds, and of several workers, as one."""

from __future__ import annotations

from typing import Any

from endpoints.io.commands import RankResult
from endpoints.nic.results import in_turn, least_far, side_by_side


def result(*phases: tuple[str, int], **more: Any) -> RankResult:
    return RankResult(
        0, list(phases), **({"failure": None, "counters": {}, "ring_dropped": 0, "cpu_seconds": 0.5} | more)
    )


FAST = (("barrier", 10), ("multicast", 20), ("handshake", 30), ("done", 40))
SLOW = (("barrier", 12), ("multicast", 22), ("recovery", 50), ("handshake", 60), ("done", 70))


def test_workers_are_as_far_as_the_last_of_them() -> None:
    assert least_far([FAST, SLOW]) == [
        ("barrier", 10),
        ("multicast", 22),
        ("recovery", 50),
        ("handshake", 60),
        ("done", 70),
    ]
    assert least_far([FAST]) == list(FAST)
    assert least_far([]) == []


def test_rounds_of_workers_are_told_apart() -> None:
    again = tuple((phase, at + 100) for phase, at in FAST)
    late = tuple((phase, at + 100) for phase, at in SLOW)
    merged = least_far([FAST + again, SLOW + late])
    assert [phase for phase, _ in merged] == 2 * ["barrier", "multicast", "recovery", "handshake", "done"]
    assert merged[5] == ("barrier", 112)


def test_a_worker_that_failed_is_a_failure_and_one_that_was_given_up_is_not_done() -> None:
    failed = (("barrier", 12), ("failed", 90))
    assert least_far([FAST, failed]) == [("barrier", 10), ("failed", 90)]
    assert least_far([FAST, SLOW[:2]]) == [("barrier", 10), ("multicast", 22)]
    merged = side_by_side([result(*FAST), result(*failed, failure=("silence", 3))])
    assert merged.failure == ("silence", 3)


def test_what_is_counted_is_summed_and_of_times_the_worst_is_told() -> None:
    one = result(*FAST, counters={"a": 1}, ring_dropped=1, heard_at=5, late_ns=7, late_counts=(1, 2), hits=[("rx",)])
    two = result(*SLOW, counters={"a": 2, "b": 1}, heard_at=9, late_ns=3, late_counts=(1,), held={("rx", 100): 2})
    merged = side_by_side([one, two])
    assert (merged.counters, merged.ring_dropped, merged.cpu_seconds) == ({"a": 3, "b": 1}, 1, 1.0)
    assert (merged.heard_at, merged.late_ns, merged.late_counts) == (9, 7, (2, 2))
    assert (merged.hits, merged.held) == ([("rx",)], {("rx", 100): 2})
    assert in_turn([one, two]).phases == [*FAST, *SLOW]
