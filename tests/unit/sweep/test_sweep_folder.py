"""The folder of a sweep after a kill, and that only one process is at work in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.errors import UserError
from experiments.results import PlatformInfo, Run, Summary
from experiments.sweep.folder import opened
from experiments.sweep.grid import Point, grid_of
from experiments.sweep.journal import Record

GRID = grid_of({"topology": "single,hosts=2", "vary": {"loss": [0, 0.01, 0.02]}}, "study")
POINTS = {str(point.scenario.name): point for point in GRID.points}
FIRST, SECOND, THIRD = GRID.points
OTHER = """
import sys
from pathlib import Path
from experiments.sweep.folder import opened
with opened(Path(sys.argv[1]), ""):
    pass
"""


def leave_run(
    sweep: Path, point: Point, *, summary: bool, time: str = "20270101T000000Z", error: str | None = None
) -> str:
    """A run's folder as a kill may leave it; its path in the sweep."""
    folder = sweep / "runs" / f"{time}-{point.scenario.name}"
    (folder / "logs").mkdir(parents=True)
    if summary:
        run = Run(
            algorithm="mcast_allgather", iteration=1, ranks=2, bytes_per_rank=1, verified=error is None, error=error,
            seconds=1.0, limit_seconds=0.5, limit_ratio=0.5,
        )  # fmt: skip
        info = PlatformInfo(kernel="6.1", datapath="user")
        (folder / "summary.json").write_text(Summary(scenario=point.scenario, platform=info, runs=[run]).to_json())
    return f"runs/{folder.name}"


def test_a_run_that_was_whole_is_over_and_one_that_was_not_is_gone(tmp_path: Path) -> None:
    sweep = tmp_path / "study"
    with opened(sweep, "") as folder:
        whole = leave_run(sweep, FIRST, summary=True)
        failed = leave_run(sweep, SECOND, summary=True, error="h1 is gone")
        cut_short = leave_run(sweep, THIRD, summary=False)
        (sweep / "runs/notes").mkdir()
        assert folder.mend(POINTS) == 2
    with opened(sweep, "") as folder:
        assert folder.journal.records == {
            FIRST.key: Record(key=FIRST.key, status="done", folder=whole),
            SECOND.key: Record(key=SECOND.key, status="failed", folder=failed, error="h1 is gone"),
        }
        assert folder.mend(POINTS) == 0
    assert not (sweep / cut_short).exists()
    assert (sweep / whole / "summary.json").exists()
    assert (sweep / "runs/notes").exists()


def test_the_folder_of_a_run_that_failed_without_results_is_kept_and_a_later_attempt_counts(tmp_path: Path) -> None:
    sweep = tmp_path / "study"
    with opened(sweep, "") as folder:
        failed = leave_run(sweep, FIRST, summary=False)
        folder.journal.append(Record(key=FIRST.key, status="failed", folder=failed, error="no switch"))
        assert folder.mend(POINTS) == 0
        assert (sweep / failed).exists()
        cut_short = leave_run(sweep, FIRST, summary=False, time="20270101T000001Z")
        again = leave_run(sweep, FIRST, summary=True, time="20270101T000002Z")
        assert folder.mend(POINTS) == 1
        assert folder.journal.records[FIRST.key] == Record(key=FIRST.key, status="done", folder=again)
        assert not (sweep / cut_short).exists()


def test_a_summary_of_another_scenario_under_a_point_s_name_is_not_its_result(tmp_path: Path) -> None:
    sweep = tmp_path / "study"
    with opened(sweep, "") as folder:
        path = leave_run(sweep, FIRST, summary=True)
        other = Summary.from_json((sweep / path / "summary.json").read_text())
        changed = other.model_copy(update={"scenario": other.scenario.model_copy(update={"mtu": 1024})})
        (sweep / path / "summary.json").write_text(changed.to_json())
        assert folder.mend(POINTS) == 0
        assert folder.journal.records == {}


def test_the_file_is_kept_beside_the_points(tmp_path: Path) -> None:
    with opened(tmp_path / "study", "vary: {loss: [0]}  # why"):
        assert (tmp_path / "study/sweep.yaml").read_text() == "vary: {loss: [0]}  # why"


def test_a_folder_that_holds_something_else_or_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis").write_text("")
    (tmp_path / "file").write_text("")
    for name, words in (("mine", "holds something else"), ("file", "cannot be written"), ("file/below", "cannot be")):
        with pytest.raises(UserError, match=words), opened(tmp_path / name, ""):
            pass


def test_only_one_process_is_at_work_in_it(tmp_path: Path) -> None:
    other = [sys.executable, "-c", OTHER, str(tmp_path)]
    with opened(tmp_path, ""):
        done = subprocess.run(other, capture_output=True, text=True, check=False)
        assert "another process is at work" in done.stderr
    subprocess.run(other, check=True)
