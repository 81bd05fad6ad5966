"""Faults that come and go while a real run is on, from a scenario's timeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, run, start, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

ONE_SECOND = ("--topo", "single,hosts=3", "--size", "3MiB", "--warmup", "0")
"""An operation of one second and more."""


def test_a_timeline_is_applied_observed_and_reconciled(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        *ONE_SECOND,
        *("--fault", "at 0.2s: host h3 rx drop 5% for 0.5s"),
        *("--fault", "at 0.3s: host h2 rx drop 100% from h1"),
        *("--fault", "at 0.4s: clear 2"),
        *("--fault", "at 30s: host h1 kill"),
    )
    result = done.verified()
    chance, cleared, missed = done.summary.faults
    assert (chance.outcome, chance.mechanism, chance.agrees) == ("expired", "endpoint", True)
    assert chance.observed["packets"] > chance.observed["struck"] > 0
    assert (cleared.outcome, cleared.agrees) == ("cleared", True)
    assert cleared.observed["packets"] == cleared.observed["struck"] > 0
    assert (missed.outcome, missed.applied_seconds) == ("not reached", None)
    assert result.injected["drop"] == chance.observed["struck"] + cleared.observed["struck"]
    assert result.packets.recovered > 0
    assert result.packets.lost == 0
    for row, at in ((chance, 0.2), (cleared, 0.3)):
        assert row.applied_seconds is not None
        assert row.applied_seconds >= at
        assert f"fault {row.number}, {row.declared}: {row.fault}: {row.outcome}, in force" in done.out


def test_a_second_terminal_puts_faults_into_a_running_experiment(tmp_path: Path) -> None:
    nobody = treecast(tmp_path / "nobody", "fault", "list")
    assert (nobody.code, nobody.out) == (2, "")
    assert nobody.err.splitlines() == ["treecast: fault: no run is on; start one with treecast run or treecast cli"]

    running = start(tmp_path / "run", *ONE_SECOND, "--iterations", "3", "--plain").says("mcast_allgather 1/3")
    added = treecast(tmp_path / "add", "fault", "add", "host", "h2", "rx", "drop", "5%")
    assert added.code == 0, added.err
    assert added.out.startswith("fault 1, by hand: host h2 rx drop 5%: live")
    wrong = treecast(tmp_path / "wrong", "fault", "add", "host", "h9", "kill")
    assert (wrong.code, len(wrong.err.splitlines())) == (1, 1)
    assert "no host 'h9'" in wrong.err
    running.says("mcast_allgather 3/3")
    cleared = treecast(tmp_path / "clear", "fault", "clear", "1")
    assert "fault 1, by hand: host h2 rx drop 5%: cleared" in cleared.out

    done = running.ended()
    assert done.code == 0, done.err
    [row] = done.summary.faults
    assert (row.outcome, row.agrees) == ("cleared", True)
    assert row.observed["struck"] > 0
