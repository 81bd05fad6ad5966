"""Random faults for real, a few: all runs end as they must, each can be had alone, and all can be stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from experiments.chaos.trials import CHAOS, Trials
from tests.e2e.command import NEEDS, Command, Finished, Traces, host_state, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

SMALL = ("chaos", "--topo", "single,hosts=4", "--size", "128KiB", "--seed", "2")

KILLED = ("--topo", "single,hosts=3", "--size", "512KiB", "--seed", "1")


def found(done: Finished) -> Trials:
    return Trials.model_validate_json((done.latest / CHAOS).read_text())


def test_runs_under_random_faults_end_as_they_must_and_each_can_be_had_alone(tmp_path: Path) -> None:
    before = host_state()
    both = treecast(tmp_path / "both", *SMALL, "--count", "2", "--output", str(tmp_path / "both" / "results"))
    assert both.code == 0, both.out + both.err
    assert host_state() == before
    first, second = found(both).trials
    assert (first.number, second.number) == (1, 2)
    assert all(trial.defect is None and trial.operation_seconds > 0 for trial in (first, second))
    assert all((both.latest / str(trial.folder)).is_dir() for trial in (first, second))

    words = second.again.split()[1:]
    alone = treecast(tmp_path / "alone", *words, "--output", str(tmp_path / "alone" / "results"))
    assert alone.code == 0, alone.out + alone.err
    [again] = found(alone).trials
    assert (again.number, again.faults) == (second.number, second.faults)


def test_whatever_part_of_a_host_with_a_nic_is_killed_the_others_end_rightly(tmp_path: Path) -> None:
    before = host_state()
    options = ("--kills", "--offload", "nic", "--workers", "2", "--start", "20", "--count", "4")
    done = treecast(tmp_path, "chaos", *KILLED, *options, "--output", str(tmp_path / "results"))
    assert done.code == 0, done.out + done.err
    assert host_state() == before
    trials = found(done).trials
    assert all(trial.defect is None for trial in trials)
    killed = {trial.faults[0].split(" kill")[1].strip() for trial in trials if not trial.verified}
    assert killed >= {"application", "nic", "worker"}


def test_stopped_it_leaves_nothing_but_what_it_has_found(tmp_path: Path) -> None:
    before = host_state()
    command = Command(tmp_path, *SMALL, "--count", "9", "--output", str(tmp_path / "results"))
    command.says("\n2/9: ")
    traces = Traces.of(command.pid)
    os.kill(command.pid, signal.SIGTERM)
    done = command.ended()
    assert done.code == 130
    assert traces.left() == []
    assert host_state() == before
    [folder] = done.output.iterdir()
    [trial] = Trials.model_validate_json((folder / CHAOS).read_text()).trials
    assert trial.number == 1
