"""A sweep for real: killed in the middle and called again, it has each point once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from experiments.results import Summary
from tests.e2e.command import NEEDS, Command, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

SWEEP = """
topology: single,hosts=2
rate_bps: 20M
warmup: 0
vary:
  - size_bytes: [0, 1000, 16KiB, 20KiB, 32KiB]
  - {size_bytes: 1000, loss: 100%}
peer_timeout_ns: 300ms
op_timeout_ns: 1s
"""


def points(sweep: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (sweep / "points.jsonl").read_text().splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(SWEEP)
    return path


def test_a_sweep_that_is_killed_and_called_again_has_each_point_once(tmp_path: Path, file: Path) -> None:
    arguments = ("sweep", str(file), "--output", str(tmp_path / "results"))
    sweep = tmp_path / "results/study"
    command = Command(tmp_path / "killed", *arguments).says("\n2/6 ")
    os.kill(command.pid, signal.SIGKILL)
    command.ended()
    before = points(sweep)
    assert 2 <= len(before) < 6

    done = treecast(tmp_path / "resumed", *arguments)
    assert done.code == 1, "the point with a loss of 100 % fails"
    assert "1 of 6 points failed" in done.err.splitlines()[-1]
    after = points(sweep)
    assert after[: len(before)] == before
    assert len({point["key"] for point in after}) == len(after) == 6
    for point in after:
        summary = Summary.from_json((sweep / str(point["folder"]) / "summary.json").read_text())
        assert point["status"] == ("failed" if summary.scenario.loss else "done")
        assert summary.verified == (point["status"] == "done")
        assert bool(point.get("error")) == (point["status"] == "failed")
    folders = {path.name for path in (sweep / "runs").iterdir() if not path.is_symlink()}
    assert folders == {Path(str(point["folder"])).name for point in after}, "nothing else is left"

    again = treecast(tmp_path / "again", *arguments)
    assert (again.code, points(sweep)) == (1, after)
    assert "6 over, 0 to do" in again.out


def test_a_wrong_grid_starts_nothing(tmp_path: Path, file: Path) -> None:
    file.write_text(SWEEP + "chains: 3\n")
    refused = treecast(tmp_path, "sweep", str(file), "--output", str(tmp_path / "results"))
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("treecast: chains 3: single,hosts=2 has 2 ranks")
    assert not (tmp_path / "results").exists()
