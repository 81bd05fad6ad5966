"""Algorithms side by side: every figure from the summary alone, by hand beside the program."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from experiments.comparison import Row, Spread, best_point_to_point, compare
from experiments.comparison_table import comparison_table, remarks
from experiments.results import Summary

ALGORITHMS = ("mcast_allgather", "openmpi_allgather", "openmpi_ring_allgather", "uftp_broadcast")


def run(algorithm: str, seconds: float | None, **changes: Any) -> dict[str, Any]:
    verified = seconds is not None
    return {
        "algorithm": algorithm,
        "iteration": 1,
        "ranks": 16,
        "bytes_per_rank": 1 << 20,
        "verified": verified,
        "error": None if verified else "it fell over",
        "seconds": seconds,
        "limit_seconds": 2.5,
        "limit_ratio": 2.5 / seconds if seconds else None,
        "link_bytes": {"h1->e00": 3_000_000, "e00->h1": 1_000_000},
        "host_tx_bytes": {"h1": 3_000_000, "h2": 2_000_000},
        "cpu": {"endpoints": 1.5},
        **changes,
    }


def summary(*runs: dict[str, Any], **changes: Any) -> Summary:
    return Summary.model_validate(
        {
            "scenario": {"algorithms": ALGORITHMS},
            "platform": {"kernel": "6.1", "datapath": "user"},
            "runs": list(runs),
            **changes,
        }
    )


def rows(*runs: dict[str, Any], **changes: Any) -> dict[str, Row]:
    """By way of the file, since nothing but the file may be needed."""
    again = Summary.from_json(summary(*runs, **changes).to_json())
    return {row.algorithm: row for row in compare(again)}


def test_times_are_medians_with_the_fastest_and_the_slowest() -> None:
    row = rows(*(run("mcast_allgather", seconds) for seconds in (2.7, 2.5, 3.5)))["mcast_allgather"]
    assert row.seconds == Spread(2.7, 2.5, 3.5)
    assert row.limit_ratio == pytest.approx(2.5 / 2.7)
    assert (row.operations, row.attempts, row.status) == (3, 3, "verified")


def test_the_yardstick_is_the_best_algorithm_without_multicast_whoever_carries_it_out() -> None:
    found = rows(
        run("mcast_allgather", 2.5),
        run("openmpi_allgather", 6.0),
        run("openmpi_ring_allgather", 5.0),
        run("uftp_broadcast", 0.7, extra_seconds={"all of it": 0.9}),
    )
    assert found["uftp_broadcast"].extra_seconds == {"all of it": 0.9}
    assert found["mcast_allgather"].speedup == pytest.approx(2.0)
    assert found["openmpi_allgather"].speedup == pytest.approx(5 / 6)
    assert found["openmpi_ring_allgather"].speedup == 1.0
    assert found["uftp_broadcast"].speedup is None, "there is no Broadcast without multicast here"


def test_bytes_of_an_external_program_stand_beside_a_bound_that_is_named_as_one() -> None:
    runs = run("mcast_allgather", 2.5), run("openmpi_allgather", 6.0, link_bytes_bound=3_200_000)
    found = rows(*runs)
    assert found["openmpi_allgather"].bound_ratio == pytest.approx(1.25)
    assert found["openmpi_allgather"].theory_ratio is None
    assert found["mcast_allgather"].bound is None
    assert found["openmpi_ring_allgather"].bound_ratio is None, "it did not run"
    console = Console(width=200)
    with console.capture() as printed:
        console.print(comparison_table(summary(*runs), list(found.values())))
    assert " 1.250* " in printed.get()
    (said,) = [line for line in remarks(list(found.values())) if line.startswith("*")]
    assert said.startswith("* openmpi_allgather: of a lower bound, payload alone: every block to every host by unicast")


def test_bytes_and_cpu_are_sums_over_links_and_hosts_and_stand_beside_theory_where_there_is_one() -> None:
    theory = {"h1->e00": 3_000_000, "e00->h1": 200_000}
    found = rows(run("mcast_allgather", 2.5, link_bytes_theory=theory), run("openmpi_allgather", 6.0, cpu={}))
    ours, theirs = found["mcast_allgather"], found["openmpi_allgather"]
    assert (ours.link_bytes, ours.host_tx_bytes, ours.cpu_seconds) == (4_000_000, 5_000_000, 1.5)
    assert ours.theory_ratio == pytest.approx(4.0 / 3.2)
    assert (theirs.theory_ratio, theirs.cpu_seconds) == (None, None)


def test_a_failed_operation_is_told_and_its_figures_do_not_count() -> None:
    row = rows(run("openmpi_allgather", 6.0), run("openmpi_allgather", None, link_bytes={"h1->e00": 7}))[
        "openmpi_allgather"
    ]
    assert (row.operations, row.attempts, row.status, row.note) == (1, 2, "FAILED", "it fell over")
    assert row.link_bytes == 4_000_000


def test_what_was_left_out_has_a_row_that_says_why() -> None:
    skipped = [{"algorithm": "openmpi_allgather", "reason": "openmpi-bin is not installed"}]
    row = rows(run("mcast_allgather", 2.5), skipped=skipped)["openmpi_allgather"]
    assert (row.status, row.note, row.seconds) == ("skipped", "openmpi-bin is not installed", None)


def test_allgathers_come_first_and_every_algorithm_has_one_row() -> None:
    reordered = {"algorithms": ("uftp_broadcast", "openmpi_allgather", "mcast_allgather")}
    assert list(rows(scenario=reordered)) == ["openmpi_allgather", "mcast_allgather", "uftp_broadcast"]


@given(st.lists(st.tuples(st.sampled_from(ALGORITHMS), st.floats(1e-3, 1e3)), max_size=30))
def test_nobody_is_faster_than_the_best_but_by_multicast(times: list[tuple[str, float]]) -> None:
    found = compare(summary(*(run(name, seconds) for name, seconds in times)))
    for row in found:
        assert (row.speedup is None) == (row.seconds is None or best_point_to_point(found, row.kind) is None)
        if row.speedup is not None and not row.multicast:
            assert row.speedup <= 1.0
    assert sum(row.operations for row in found) == len(times)


def shown(results: Summary) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        table = compare(results)
        console.print(comparison_table(results, table))
        for line in remarks(table):
            console.print(line)
    return captured.get()


def test_a_person_sees_every_figure_and_every_reason() -> None:
    theory = {"h1->e00": 4_000_000}
    text = shown(
        summary(
            run("mcast_allgather", 2.5, link_bytes_theory=theory),
            run("openmpi_allgather", 6.0),
            skipped=[{"algorithm": "openmpi_ring_allgather", "reason": "python3-mpi4py is not installed"}],
        )
    )
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert lines["mcast_allgather"][1:] == [
        *("2500.0", "2500.0", "-", "2500.0", "1.000", "2.40x", "4.0", "1.000", "5.0", "1.50", "unknown", "verified"),
    ]
    assert lines["openmpi_ring_allgather"][1:] == ["-"] * 9 + ["skipped"]
    assert "best point-to-point allgather: openmpi_allgather" in text
    assert "openmpi_ring_allgather: skipped, python3-mpi4py is not installed" in text
