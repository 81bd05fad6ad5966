"""The ledger: what dead runs left is undone, what live runs need stays, and nobody else's value is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.errors import EnvironmentMissing
from experiments.ledger import Ledger
from experiments.processes import Process
from tests.unit.topo.pretended_groups import PretendedV2
from topo.cgroups.forms import group

KNOB = "net.core.wmem_default"


class Host:
    """A pretended host: a sysctl in a folder, and a ledger that believes in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "run" / "treecast"
        self.root.parent.mkdir()
        self.proc = folder / "proc"
        self.knob = self.proc / "sys/net/core/wmem_default"
        self.boot = self.proc / "sys/kernel/random/boot_id"
        for path, text in ((self.knob, "212992\n"), (self.boot, "first\n")):
            path.parent.mkdir(parents=True)
            path.write_text(text)
        self.groups = PretendedV2(folder / "cgroup")
        self.groups_of_runs = folder / "cgroup" / "treecast"

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.root, self.proc, groups=self.groups)

    @property
    def value(self) -> int:
        return int(self.knob.read_text())

    def killed_run(self, wanted: int = 1000000) -> int:
        """A run of another process that was killed while it was running; its pid."""
        script = (
            "import os, signal, sys; from pathlib import Path; from experiments.ledger import Ledger\n"
            "with Ledger(Path(sys.argv[1]), Path(sys.argv[2])).open_run() as run:\n"
            "    run.raise_sysctls({sys.argv[3]: int(sys.argv[4])})\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        arguments = [str(self.root), str(self.proc), KNOB, str(wanted)]
        process = subprocess.Popen([sys.executable, "-c", script, *arguments])
        assert process.wait() == -signal.SIGKILL
        return process.pid


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_run_raises_what_is_too_low_and_puts_it_back(host: Host) -> None:
    with host.ledger.open_run() as run:
        assert run.rundir.is_dir()
        assert run.raise_sysctls({KNOB: 1000000}) == {KNOB: 1000000}
        assert host.value == 1000000
    assert host.value == 212992
    assert not host.root.exists()


def test_what_is_high_enough_is_not_touched(host: Host) -> None:
    with host.ledger.open_run() as run:
        assert run.raise_sysctls({KNOB: 1000}) == {KNOB: 212992}
        assert host.value == 212992


def test_an_error_in_a_run_puts_everything_back(host: Host) -> None:
    with pytest.raises(RuntimeError), host.ledger.open_run() as run:  # noqa: PT012  # both lines are the point
        run.raise_sysctls({KNOB: 1000000})
        raise RuntimeError
    assert host.value == 212992
    assert not host.root.exists()


def test_a_sysctl_stays_raised_until_the_last_run_ends(host: Host) -> None:
    with host.ledger.open_run() as first:
        first.raise_sysctls({KNOB: 1000000})
        with host.ledger.open_run() as second:
            second.raise_sysctls({KNOB: 2000000})
            assert first.rundir != second.rundir
        assert host.value == 2000000
        assert first.rundir.is_dir()
    assert host.value == 212992


def test_the_next_run_undoes_what_a_killed_one_left(host: Host) -> None:
    pid = host.killed_run()
    assert host.value == 1000000
    assert (host.root / str(pid)).is_dir()
    with host.ledger.open_run():
        assert host.value == 212992
        assert not (host.root / str(pid)).exists()
    assert not host.root.exists()


def test_cleaning_undoes_it_once_and_says_so(host: Host) -> None:
    pid = host.killed_run()
    done, live = host.ledger.clean()
    assert live == 0
    assert f"removed what run {pid} left, which had been killed" in done
    assert f"set {KNOB} back from 1000000 to 212992" in done
    assert host.value == 212992
    assert host.ledger.clean() == ([], 0)
    assert not host.root.exists()


def test_cleaning_beside_a_live_run_leaves_it_and_its_sysctl_alone(host: Host) -> None:
    with host.ledger.open_run() as run:
        run.raise_sysctls({KNOB: 1000000})
        pid = host.killed_run(2000000)
        done, live = host.ledger.clean()
        assert done == [f"removed what run {pid} left, which had been killed"]
        assert live == 1
        assert host.value == 2000000
        assert run.rundir.is_dir()
    assert host.value == 212992


def test_a_value_that_somebody_else_has_set_since_stays(host: Host) -> None:
    host.killed_run()
    host.knob.write_text("777\n")
    done, _ = host.ledger.clean()
    assert any("somebody else" in line for line in done)
    assert host.value == 777


def test_a_crash_between_note_and_change_restores_nothing_and_forgets(host: Host) -> None:
    host.killed_run()
    host.knob.write_text("212992\n")
    done, _ = host.ledger.clean()
    assert not any("wmem" in line for line in done)
    assert not host.root.exists()


def test_after_a_reboot_old_notes_are_dropped_and_sysctls_stay(host: Host) -> None:
    host.killed_run()
    host.boot.write_text("second\n")
    host.ledger.clean()
    assert host.value == 1000000
    assert not host.root.exists()


def test_a_pid_that_belongs_to_somebody_else_by_now_is_not_a_live_run(host: Host) -> None:
    pid = host.killed_run()
    page = host.root / f"{pid}.json"
    entry = json.loads(page.read_text())
    entry["parent"]["pid"] = os.getpid()
    page.write_text(json.dumps(entry))
    assert host.ledger.clean()[1] == 0
    assert not host.root.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot": "first"}'])
def test_a_page_that_was_cut_short_is_swept(host: Host, text: str) -> None:
    host.root.mkdir()
    (host.root / "123.json").write_text(text)
    (host.root / "sysctls.json").write_text(text)
    (host.root / ".124.part").write_text(text)
    (host.root / "125").mkdir()
    with host.ledger.open_run():
        assert [path.name for path in sorted(host.root.iterdir())] == [f"{os.getpid()}", f"{os.getpid()}.json"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()


def test_a_process_of_a_killed_run_that_will_not_end_is_killed(
    host: Host, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.ledger.DYING_S", 0.0)
    pid = host.killed_run()
    page = host.root / f"{pid}.json"
    entry = json.loads(page.read_text())
    child = Process.of(sleeper.pid)
    assert child is not None
    entry["child"] = {"pid": child.pid, "started": child.started}
    page.write_text(json.dumps(entry))
    host.ledger.clean()
    assert not child.alive
    assert sleeper.wait() == -signal.SIGKILL


def test_a_child_pid_that_is_somebody_elses_by_now_is_not_killed(
    host: Host, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.ledger.DYING_S", 0.0)
    pid = host.killed_run()
    page = host.root / f"{pid}.json"
    entry = json.loads(page.read_text())
    entry["child"] = {"pid": sleeper.pid, "started": 1}
    page.write_text(json.dumps(entry))
    host.ledger.clean()
    assert sleeper.poll() is None


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Process.of(process.pid) is None
    process.wait()


def test_the_child_is_written_down(host: Host) -> None:
    with host.ledger.open_run() as run:
        run.record_child(os.getppid())
        page = json.loads((host.root / f"{run.name}.json").read_text())
    assert page["child"]["pid"] == os.getppid()
    assert page["parent"]["pid"] == os.getpid()


def test_a_sysctl_that_the_kernel_lacks_is_named(host: Host) -> None:
    with host.ledger.open_run() as run, pytest.raises(EnvironmentMissing, match=r"net\.core\.nothing"):
        run.raise_sysctls({"net.core.nothing": 1})
    assert not host.root.exists()


def test_a_runs_control_groups_end_with_it(host: Host) -> None:
    with host.ledger.open_run() as run:
        host.groups.make(group(run.name, "h1", "nic"))
        with host.ledger.open_run() as other:
            host.groups.make(group(other.name, "h1", "nic"))
        assert [path.name for path in host.groups_of_runs.iterdir() if path.is_dir()] == [run.name]
    assert not host.groups_of_runs.exists()


def test_the_next_run_removes_the_control_groups_of_a_killed_one(host: Host) -> None:
    killed = group(f"{host.killed_run()}")
    host.groups.make(killed / "h1" / "nic")
    with host.ledger.open_run():
        assert not (host.groups_of_runs / killed.name).exists()
    assert not host.groups_of_runs.exists()


def test_a_control_group_with_somebody_elses_process_stays_until_that_has_left(host: Host) -> None:
    pid = host.killed_run()
    nic = group(f"{pid}", "h1", "nic")
    host.groups.make(nic)
    host.groups.place(nic, [11, 12])
    for _ in range(2):
        done, live = host.ledger.clean()
        assert f"left the control groups of run {pid}: processes 11, 12 are in them" in done
        assert live == 0
        assert host.value == 212992, "all else is undone"
    (host.groups_of_runs.parent / nic / "cgroup.procs").write_text("")
    assert host.ledger.clean()[0] == [f"removed what run {pid} left, which had been killed"]
    assert not host.groups_of_runs.exists()
    assert not host.root.exists()


def test_no_run_takes_the_name_of_one_that_has_left_control_groups(host: Host) -> None:
    with host.ledger.open_run() as run:
        host.groups.make(group(run.name))
        host.groups.place(group(run.name), [11])
    with host.ledger.open_run() as second:
        assert second.name == f"{run.name}-2"
