"""Verdicts on real runs: what the machine keeps up with is valid, what it cannot carry is called overloaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]


def test_a_slow_fabric_is_valid_and_every_frame_is_accounted_for(tmp_path: Path) -> None:
    found = run(tmp_path, "--topo", "single,hosts=3", "--bw", "10", "--size", "256KiB", "--loss", "2%").summary
    assert found.fidelity.verdict == "valid", found.fidelity
    assert len(found.probe_bps) == 6, "every link is tried, either way"
    assert all(0.97 < carried / 10e6 < 1.03 for carried in found.probe_bps.values())
    [operation] = found.runs
    assert operation.packets.lost == 0
    assert operation.packets.dropped_injected > 0
    assert operation.fidelity.reasons == []


def test_what_was_repeated_in_vain_and_comes_after_the_end_is_accounted_for(tmp_path: Path) -> None:
    ring = ("--topo", "single,hosts=6", "--size", "512KiB", "--algorithm", "ring_allgather", "--iterations", "4")
    summary = run(tmp_path, *ring, "--loss", "1%", "--reorder", "5%").summary
    assert sum(each.packets.duplicates for each in summary.runs) > 50, "many came late"
    assert [each.packets.lost for each in summary.runs] == [0] * 4


def test_links_far_beyond_the_machine_are_called_overloaded_with_a_cure(tmp_path: Path) -> None:
    found = run(tmp_path, "--topo", "fattree,k=4", "--bw", "900", "--size", "1MiB").summary
    assert found.fidelity.verdict == "overloaded", found.fidelity
    assert any("use --bw" in reason for reason in found.fidelity.reasons)


def test_results_that_are_not_as_expected_fail_the_run_in_one_line(tmp_path: Path) -> None:
    scenario = tmp_path / "expected.yaml"
    scenario.write_text(
        "topology: single,hosts=2\nsize_bytes: 16KiB\n"
        "expect:\n- {metric: packets.recovered, equals: 0}\n- {metric: seconds, at_most: 0.000001}\n"
    )
    ended = run(tmp_path, str(scenario))
    assert ended.code == 1
    assert ended.summary.verified
    assert "1 of the scenario's expectations do not hold: mcast_allgather: seconds is " in ended.err
