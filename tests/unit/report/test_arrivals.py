"""Arrivals of one rank, read off a fabricated capture of its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.report.evidence import Evidence, Operation, gather
from experiments.report.figure import NothingToShow
from experiments.report.figures import arrivals
from tests.unit.analysis.run import CHUNKS, MS, MTU, SIZE, Folder, chunk, read
from tests.unit.report.fabricated import summary

SUMMARY = summary(mtu=MTU, size_bytes=SIZE, trees=2)
LOST, LOST_INSIDE = 2 * CHUNKS + 3, 3 * CHUNKS + 4


@pytest.fixture
def operation(tmp_path: Path) -> Operation:
    """h2 saw all roots' chunks but one, and fetched that one and another, which had been on its link, from h3."""
    multicast = [
        (index, chunk(root, index)) for index in range(CHUNKS) for root in range(4) if root * CHUNKS + index != LOST
    ]
    fetched = [*read(1, 2, LOST, 1, psn=5), *read(1, 2, LOST_INSIDE, 1, psn=7)]
    folder = Folder(tmp_path)
    folder.capture("h2", "h2-eth0", [*multicast, *((20 + at, frame) for at, frame in enumerate(fetched))])
    folder.capture("l0-s0", "l0-eth3", multicast)
    (tmp_path / "summary.json").write_text(SUMMARY.to_json())
    [operation] = gather(tmp_path).operations
    return operation


def test_every_chunk_of_the_others_is_complete_at_the_time_at_which_it_was_in_place(operation: Operation) -> None:
    found = arrivals.read(operation, operation.folder / "captures/h2.pcapng")
    chunks, times = found.complete
    assert chunks.tolist() == [number for number in range(4 * CHUNKS) if number // CHUNKS != 1]
    assert len(chunks) == found.expected
    in_place = dict(zip(chunks.tolist(), times.tolist(), strict=True))
    assert in_place[0] == 0
    assert in_place[9] == 9 * MS
    assert in_place[LOST] == 21 * MS, "it came by READ alone"
    assert in_place[LOST_INSIDE] == 23 * MS, "that it was on the link did not help"


def test_the_figure_is_of_the_host_s_capture_and_not_of_a_link_s(operation: Operation) -> None:
    [plate] = arrivals.FIGURE.make(Evidence(operation.folder, (operation,)))
    assert {row[0] for row in plate.table.rows} == {"h2"}
    assert sorted((row[2], row[3]) for row in plate.table.rows if row[4] == "READ") == [
        (LOST, 21.0),
        (LOST_INSIDE, 23.0),
    ]


def test_without_a_capture_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path, tuple(Operation(tmp_path, SUMMARY, run) for run in SUMMARY.runs))
    with pytest.raises(NothingToShow, match="--capture h1"):
        arrivals.FIGURE.make(evidence)
