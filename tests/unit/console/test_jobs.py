"""Operations in the background of a console: one that fails is told, and the next works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from experiments.console.jobs import STOPPED, Jobs, QuietProgress, told
from experiments.errors import Cancelled, ExperimentFailed, Refused, UserError
from experiments.results import Run

PATIENCE_S = 20.0
"""Far beyond what anything here takes."""


def ran(number: int, error: str | None = None, hosts: tuple[str, ...] = ()) -> Run:
    return Run(
        algorithm="mcast_allgather",
        iteration=number,
        ranks=len(hosts) or 4,
        hosts=list(hosts),
        bytes_per_rank=1 << 20,
        verified=error is None,
        error=error,
        seconds=None if error else 1.0,
        limit_seconds=0.5,
        limit_ratio=None if error else 0.5,
    )


class Operations:
    """Ends operations as the test says; one that says nothing goes on until it is cancelled or abandoned."""

    name = "mcast_allgather"

    def __init__(self, progress: QuietProgress) -> None:
        self.progress = progress
        self.ends: Iterator[Callable[[int], Run]] = iter(())
        self.under_way = threading.Event()

    def of(self, name: str, size_bytes: int) -> Operations:
        return self

    def one(self, number: int) -> Run:
        end = next(self.ends, None)
        return self.go_on(number) if end is None else end(number)

    def go_on(self, number: int) -> Run:
        self.progress.phase("multicast", None)
        try:
            while True:
                self.progress.advance(1, 2)
                self.under_way.set()
        except Cancelled as stop:
            return ran(number, str(stop))


@pytest.fixture
def it() -> Iterator[tuple[Jobs, Operations, list[str]]]:
    lines: list[str] = []
    progress = QuietProgress()
    operations = Operations(progress)
    jobs = Jobs(operations, progress, lines.append)  # type: ignore[arg-type]
    yield jobs, operations, lines
    jobs.abandon()


def fails(problem: Exception) -> Callable[[int], Run]:
    def end(_: int) -> Run:
        raise problem

    return end


def test_an_operation_that_failed_is_told_in_a_line_and_the_next_works(
    it: tuple[Jobs, Operations, list[str]],
) -> None:
    jobs, operations, lines = it
    survivors = ("h1", "h2", "h4")
    operations.ends = iter([lambda n: ran(n, "h3 is missing"), lambda n: ran(n, hosts=survivors)])
    for _ in range(2):
        jobs.start("mcast_allgather", 1 << 20, repeat=False)
        jobs.wait()
    assert lines == [
        "mcast_allgather 1, 1 MiB: FAILED: h3 is missing",
        "mcast_allgather 2, 1 MiB, among 3 hosts: 1000 ms, 0.500 of the limit, 0 recovered, verified, unknown",
    ]
    assert (jobs.status, jobs.failed) == ("idle", True)


@pytest.mark.parametrize("problem", [Refused("its root h1 is missing"), ExperimentFailed("the capture ended")])
def test_one_that_could_not_be_is_told_and_ends_nothing_else(
    it: tuple[Jobs, Operations, list[str]], problem: Exception
) -> None:
    jobs, operations, lines = it
    operations.ends = iter([fails(problem), ran])
    for repeat in (True, False):
        jobs.start("mcast_allgather", 1 << 20, repeat=repeat)
        jobs.wait()
    assert lines[0] == f"mcast_allgather: {problem}"
    assert [run.verified for run in jobs.runs] == [True]
    assert jobs.failed


def test_a_repetition_ends_with_the_operation_that_fails(it: tuple[Jobs, Operations, list[str]]) -> None:
    jobs, operations, _ = it
    operations.ends = iter([ran, ran, lambda n: ran(n, "h3 is missing"), ran])
    jobs.start("mcast_allgather", 1 << 20, repeat=True)
    jobs.wait()
    assert [run.error for run in jobs.runs] == [None, None, "h3 is missing"]


def test_stop_ends_the_operation_under_way_and_that_is_no_failure(it: tuple[Jobs, Operations, list[str]]) -> None:
    jobs, operations, lines = it
    jobs.start("mcast_allgather", 1 << 20, repeat=True)
    assert operations.under_way.wait(PATIENCE_S)
    assert (jobs.busy, jobs.status) == (True, "multicast, 50% of the chunks, repeated")
    with pytest.raises(UserError, match="an operation is on; `stop` ends it"):
        jobs.start("mcast_allgather", 1 << 20, repeat=False)
    jobs.stop()
    jobs.wait()
    assert lines == ["mcast_allgather 1, 1 MiB: stopped by hand"]
    assert (jobs.busy, jobs.failed) == (False, False)
    operations.ends = iter([ran])
    jobs.start("mcast_allgather", 1 << 20, repeat=False)
    jobs.wait()
    assert jobs.runs[-1].verified, "what was stopped before does not stop what comes after"


def test_what_is_abandoned_ends_without_a_word(it: tuple[Jobs, Operations, list[str]]) -> None:
    jobs, operations, lines = it
    jobs.start("mcast_allgather", 1 << 20, repeat=True)
    assert operations.under_way.wait(PATIENCE_S)
    jobs.abandon()
    assert (lines, jobs.busy) == ([], False)


def test_only_what_was_stopped_is_told_as_stopped() -> None:
    assert told(ran(7, STOPPED)) == "mcast_allgather 7, 1 MiB: stopped by hand"
    assert told(ran(7, "stopped by a fault")) == "mcast_allgather 7, 1 MiB: FAILED: stopped by a fault"
