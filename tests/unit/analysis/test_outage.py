"""Interruptions of streams, read off captures of a run that never was."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from experiments.analysis.outage import Outage, longest_outage
from experiments.analysis.streams import Key, expected, passages
from experiments.analysis.trace import read_trace
from tests.unit.analysis.run import BEGIN, MS, Folder, chunk

Timed = list[tuple[int, bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def sent(root: int, times: Iterable[int]) -> Timed:
    """A chunk of ``root`` at each of these times in ms, over the trees in turns."""
    return [(time, chunk(root, index)) for index, time in enumerate(times)]


def found(*captures: Path) -> Outage | None:
    trace = read_trace(captures)
    return longest_outage(trace.points, passages(trace, expected(trace)))


def outage(root: int, tree: int, point: int, begin: int, end: int) -> Outage:
    return Outage(Key(1, root, tree), point, BEGIN + begin * MS, BEGIN + end * MS)


def test_the_longest_gap_of_any_stream_at_any_host_is_found(folder: Folder) -> None:
    one, other = sent(0, range(10)), sent(1, [0, 1, 2, 3, 4, 5, 16, 17, 18, 19])
    h3, h4 = (folder.capture(host, f"{host}-eth0", [*one, *other]) for host in ("h3", "h4"))
    assert found(h3, h4) == outage(1, 0, 0, 4, 16)


def test_a_stream_that_never_came_is_interrupted_all_the_time(folder: Folder) -> None:
    h3 = folder.capture("h3", "h3-eth0", sent(0, range(10)))
    h4 = folder.capture("h4", "h4-eth0", sent(1, range(0, 20, 2)))
    assert found(h3, h4) == outage(1, 0, 0, 0, 16)


def test_a_stream_that_does_not_come_again_is_interrupted_until_its_end_elsewhere(folder: Folder) -> None:
    """The first host hears nothing after 2 ms of what its root sends until 8 and 9 ms."""
    whole = sent(0, range(10))
    ended, root = folder.capture("h3", "h3-eth0", whole[:3]), folder.capture("h1", "h1-eth0", whole)
    assert found(ended, root) == outage(0, 1, 0, 1, 9)


def test_a_stream_that_begins_late_is_interrupted_since_its_beginning_elsewhere(folder: Folder) -> None:
    whole = sent(0, range(10))
    late, root = folder.capture("h3", "h3-eth0", whole[6:]), folder.capture("h1", "h1-eth0", whole)
    assert found(late, root) == outage(0, 0, 0, 0, 6)


def test_neither_a_roots_own_link_nor_a_link_between_switches_is_a_receiver(folder: Folder) -> None:
    gap = sent(0, [0, 1, 2, 3, 94, 95, 96, 97, 98, 99])
    assert found(folder.capture("h1", "h1-eth0", gap), folder.capture("l0-s0", "l0-eth3", gap)) is None


def test_duplicates_do_not_shorten_a_gap_and_nothing_captured_is_none(folder: Folder) -> None:
    again = [(time, chunk(0, 0)) for time in (3, 5, 7)]
    late = [(9, chunk(0, 2))]
    assert found(folder.capture("h3", "h3-eth0", [(0, chunk(0, 0)), *again, *late])) == outage(0, 0, 0, 0, 9)
    assert found(folder.capture("h4", "h4-eth0", [])) is None
