"""Both versions of control groups, in pretended trees, and process times in their stead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.topo.pretended_groups import PretendedV1, PretendedV2
from topo.cgroups.find import find
from topo.cgroups.forms import group
from topo.cgroups.groups import Directories, Unsupported
from topo.cgroups.process_times import ProcessTimes

NIC = group("12", "h1", "nic")
APPLICATION = group("12", "h1", "application")


@pytest.fixture
def v1(tmp_path: Path) -> PretendedV1:
    return PretendedV1(tmp_path / "v1", "cpu", "cpuacct", "cpuset")


@pytest.fixture
def v2(tmp_path: Path) -> PretendedV2:
    return PretendedV2(tmp_path / "v2", "cpu", "cpuset")


@pytest.fixture(params=["v1", "v2"])
def groups(request: pytest.FixtureRequest) -> Directories:
    return request.getfixturevalue(request.param)


def test_a_process_is_put_into_its_group_in_every_hierarchy(v1: PretendedV1) -> None:
    v1.make(NIC)
    v1.make(APPLICATION)
    v1.place(NIC, [11, 12])
    v1.place(APPLICATION, [12])
    for controller in ("cpu", "cpuacct", "cpuset"):
        assert (v1.folder / controller / NIC / "cgroup.procs").read_text() == "11\n"
        assert (v1.folder / controller / APPLICATION / "cgroup.procs").read_text() == "12\n"


def test_controllers_that_share_a_directory_are_one_hierarchy(tmp_path: Path) -> None:
    groups = PretendedV1(tmp_path, "cpuacct")
    Directories.__init__(groups, [tmp_path / "cpuacct", tmp_path / "cpuacct"])
    groups.make(NIC)
    groups.place(NIC, [11])
    assert (tmp_path / "cpuacct" / NIC / "cgroup.procs").read_text() == "11\n"


def test_a_new_cpuset_of_version_1_has_the_cpus_and_memory_of_the_one_above(v1: PretendedV1) -> None:
    v1.make(NIC)
    for folder in (NIC, *NIC.parents):
        assert (v1.folder / "cpuset" / folder / "cpuset.cpus").read_text() == "0-3\n"
        assert (v1.folder / "cpuset" / folder / "cpuset.mems").read_text() == "0\n"


def test_making_a_group_again_changes_nothing(groups: Directories) -> None:
    groups.make(NIC)
    groups.place(NIC, [11])
    groups.pin(NIC, {1})
    groups.make(NIC)
    assert groups.remove(group("12")) == [11]


def test_cpu_time_is_read(v1: PretendedV1, v2: PretendedV2) -> None:
    v1.make(NIC)
    (v1.folder / "cpuacct" / NIC / "cpuacct.usage").write_text("123456789\n")
    assert v1.cpu_ns(NIC) == 123_456_789
    v2.make(NIC)
    (v2._root / NIC / "cpu.stat").write_text("usage_usec 77\nuser_usec 70\n")
    assert v2.cpu_ns(NIC) == 77_000


def test_version_1_takes_cpus_and_a_limit(v1: PretendedV1) -> None:
    v1.make(NIC)
    v1.pin(NIC, {1, 3})
    v1.limit(NIC, 0.5)
    assert (v1.folder / "cpuset" / NIC / "cpuset.cpus").read_text() == "1,3"
    assert (v1.folder / "cpu" / NIC / "cpu.cfs_quota_us").read_text() == "50000"
    assert (v1.folder / "cpu" / NIC / "cpu.cfs_period_us").read_text() == "100000"


def test_version_2_hands_a_controller_down_when_it_is_asked_for_and_not_before(v2: PretendedV2) -> None:
    v2.make(NIC)
    handed = [v2._root / folder / "cgroup.subtree_control" for folder in NIC.parents]
    assert [file.read_text().split() for file in handed] == [[]] * len(handed)
    v2.pin(NIC, {1})
    assert [file.read_text().split() for file in handed] == [["cpuset"]] * len(handed)
    v2.limit(NIC, 0.5)
    assert [file.read_text().split() for file in handed] == [["cpuset", "cpu"]] * len(handed)
    assert (v2._root / NIC / "cpuset.cpus").read_text() == "1"
    assert (v2._root / NIC / "cpu.max").read_text() == "50000 100000"


def test_processes_enter_a_group_that_has_cpus_of_its_own(groups: Directories) -> None:
    groups.make(NIC)
    groups.pin(NIC, {1})
    groups.place(NIC, [11])
    assert groups.remove(NIC) == [11]


def test_what_a_hierarchy_lacks_is_refused_by_name(tmp_path: Path) -> None:
    for groups in (PretendedV1(tmp_path / "v1", "cpuacct"), PretendedV2(tmp_path / "v2")):
        groups.make(NIC)
        with pytest.raises(Unsupported, match="without its controller cpuset"):
            groups.pin(NIC, {0})
        with pytest.raises(Unsupported, match=r"without its controller cpu$"):
            groups.limit(NIC, 0.5)


def test_a_group_goes_with_all_below_it(groups: Directories) -> None:
    groups.make(NIC)
    groups.make(APPLICATION)
    groups.make(group("13", "h1", "nic"))
    assert groups.runs() == {"12", "13"}
    assert groups.remove(group("12")) == ()
    assert groups.runs() == {"13"}
    assert all((root / group("13", "h1", "nic")).exists() for root in groups._roots)


def test_the_group_of_all_runs_goes_when_none_is_in_it(groups: Directories) -> None:
    groups.make(NIC)
    groups.tidy()
    assert all((root / NIC).exists() for root in groups._roots)
    groups.remove(group("12"))
    groups.tidy()
    assert not any((root / "treecast").exists() for root in groups._roots)
    assert groups.runs() == frozenset()


def test_what_is_not_there_is_removed_already(groups: Directories) -> None:
    assert groups.remove(group("12")) == ()


def test_a_group_with_a_process_in_it_stays_as_it_is(groups: Directories) -> None:
    groups.make(NIC)
    groups.make(APPLICATION)
    groups.place(NIC, [11])
    assert groups.remove(group("12")) == [11]
    assert groups.cpu_ns(NIC) == groups.cpu_ns(APPLICATION) == 0


def test_a_process_that_has_ended_is_passed_over(groups: Directories, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(file: Path, text: str) -> None:
        raise ProcessLookupError

    groups.make(NIC)
    monkeypatch.setattr(groups, "_write", ended)
    groups.place(NIC, [11])
    assert groups.remove(NIC) == ()


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that computes until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys, time\nprint(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_without_control_groups_the_processes_own_clocks_count(worker: subprocess.Popen[bytes]) -> None:
    groups = ProcessTimes("a test")
    groups.make(NIC)
    groups.place(NIC, [worker.pid])
    while not groups.cpu_ns(NIC):
        time.sleep(0.001)
    worker.kill()
    worker.wait()
    assert groups.cpu_ns(NIC) > 0, "what it had used at the last look is not forgotten"
    assert groups.mechanism == "process times (a test)"
    assert groups.remove(NIC) == ()
    assert groups.cpu_ns(NIC) == 0


def test_what_a_process_used_before_it_was_placed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {11: 1000, 12: 50}
    monkeypatch.setattr(ProcessTimes, "_look", lambda _, pid: clocks[pid])
    groups = ProcessTimes("a test")
    for part, pid in ((APPLICATION, 11), (NIC, 12)):
        groups.make(part)
        groups.place(part, [pid])
    clocks |= {11: 1300, 12: 52}
    assert (groups.cpu_ns(APPLICATION), groups.cpu_ns(NIC), groups.cpu_ns(group("12"))) == (300, 2, 302)


def test_process_times_neither_pin_nor_limit() -> None:
    groups = ProcessTimes("a test")
    groups.make(NIC)
    with pytest.raises(Unsupported, match="a test"):
        groups.pin(NIC, {0})
    with pytest.raises(Unsupported, match="a test"):
        groups.limit(NIC, 0.5)


MOUNT = "{0} 1 0:{0} / {1} rw - {2} none rw,{3}\n"


@pytest.mark.parametrize(
    ("mounts", "mechanism"),
    [
        ((("/c/cpu,cpuacct", "cgroup", "cpu,cpuacct"), ("/c/u", "cgroup2", "")), "cgroup v1 (cpu, cpuacct)"),
        ((("/c/memory", "cgroup", "memory"), ("/c/u", "cgroup2", "")), "cgroup v2"),
        ((), "process times (no control groups are mounted that could be written to)"),
    ],
)
def test_the_hierarchy_that_accounts_is_found(mounts, mechanism, tmp_path, monkeypatch) -> None:
    file = tmp_path / "mountinfo"
    file.write_text("".join(MOUNT.format(30 + i, *mount) for i, mount in enumerate(mounts)))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find(file).mechanism == mechanism


def test_who_is_not_root_counts_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find().mechanism == "process times (control groups need root)"
