"""Random faults for real, a short one: both runs end as they must, and one of them alone is the same again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, host_state, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

SMALL = ("--topo", "single,hosts=4", "--size", "128KiB", "--seed", "2")


def test_runs_under_random_faults_end_as_they_must_and_each_can_be_had_alone(tmp_path: Path) -> None:
    before = host_state()
    both = treecast(tmp_path / "both", "chaos", *SMALL, "--count", "2", "--output", str(tmp_path / "results"))
    assert both.code == 0, both.err
    assert both.out.count("    right: ") == 2
    assert host_state() == before

    alone = treecast(tmp_path / "alone", "chaos", *SMALL, "--only", "2", "--output", str(tmp_path / "results"))
    assert alone.code == 0, alone.err
    timeline = alone.out.splitlines()[0].partition(": ")[2]
    assert f"2/2: {timeline}\n" in both.out
