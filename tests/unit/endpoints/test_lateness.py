"""How late a loop is, by size."""

from __future__ import annotations

from endpoints.io.lateness import BOUNDS_NS, Lateness


def test_the_longest_is_kept_and_all_are_counted_by_size() -> None:
    late = Lateness()
    for ns in (0, 999_999, 1_000_000, 7_000_000, BOUNDS_NS[-1]):
        late.note(ns)
    assert late.longest_ns == BOUNDS_NS[-1]
    assert late.counts == [2, 1, 1, 0, 1]


def test_what_is_served_early_is_not_late() -> None:
    late = Lateness()
    late.note(-5)
    assert (late.longest_ns, late.counts[0]) == (0, 1)
