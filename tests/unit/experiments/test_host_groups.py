"""A host's application and its NIC are accounted apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import EnvironmentMissing
from experiments.host_groups import Cpu, HostGroups
from tests.unit.topo.pretended_groups import PretendedV1
from topo.cgroups.find import find
from topo.cgroups.process_times import ProcessTimes


@pytest.fixture
def kernel(tmp_path: Path) -> PretendedV1:
    return PretendedV1(tmp_path, "cpu", "cpuacct", "cpuset")


def _use(kernel: PretendedV1, group: str, usage: int) -> None:
    (kernel.folder / "cpuacct" / "treecast" / group / "cpuacct.usage").write_text(f"{usage}\n")


def test_each_hosts_cpu_time_is_told_by_part(kernel: PretendedV1) -> None:
    groups = HostGroups("12", kernel)
    groups.place("h1", [1], [2, 3])
    groups.place("h2", [4], [])
    _use(kernel, "12/h1/application", 10)
    _use(kernel, "12/h1/nic", 700)
    _use(kernel, "12/h2/application", 5)
    assert groups.cpu_ns() == {"h1": Cpu(10, 700), "h2": Cpu(5, 0)}
    assert groups.mechanism == "cgroup v1 (cpu, cpuacct, cpuset)"
    assert (kernel.folder / "cpu/treecast/12/h1/nic/cgroup.procs").read_text() == "2\n3\n"


def test_cpu_times_add_up_and_are_told_apart() -> None:
    assert Cpu(10, 700) - Cpu(4, 200) + Cpu(1, 1) == Cpu(7, 501)


def test_nics_get_the_cpus_and_the_limit_that_were_asked_for_and_applications_do_not(kernel: PretendedV1) -> None:
    groups = HostGroups("12", kernel)
    groups.place("h1", [1], [2])
    groups.pin_nics({1})
    groups.limit_nics(0.5)
    cpus = kernel.folder / "cpuset/treecast/12/h1"
    assert (cpus / "nic/cpuset.cpus").read_text() == "1"
    assert (cpus / "application/cpuset.cpus").read_text() == "0-3\n"
    assert (kernel.folder / "cpu/treecast/12/h1/nic/cpu.cfs_quota_us").read_text() == "50000"
    assert (kernel.folder / "cpu/treecast/12/h1/application/cpu.cfs_quota_us").read_text() == "-1\n"


def test_what_cannot_be_given_to_nics_is_said(tmp_path: Path) -> None:
    groups = HostGroups("12", PretendedV1(tmp_path, "cpuacct"))
    groups.place("h1", [1], [2])
    with pytest.raises(EnvironmentMissing, match=r"controller cpu$"):
        groups.limit_nics(0.5)


def test_a_process_that_is_placed_again_only_moves(kernel: PretendedV1) -> None:
    groups = HostGroups("12", kernel)
    groups.place("h1", [1], [2])
    groups.place("h1", [], [5])
    assert (kernel.folder / "cpu/treecast/12/h1/nic/cgroup.procs").read_text() == "2\n5\n"


def test_where_no_group_can_be_made_processes_are_counted_and_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = find()

    def refused(_path: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, "make", refused)
    monkeypatch.setattr("experiments.host_groups.find", lambda: kernel)
    groups = HostGroups("12")
    groups.place("h1", [1], [])
    assert groups.mechanism == f"process times ({kernel.mechanism}: Operation not permitted)"
    assert groups.cpu_ns().keys() == {"h1"}


@pytest.mark.parametrize(
    ("offloaded", "spent"), [(True, {"nic": 0.7, "application": 0.015}), (False, {"endpoints": 0.015})]
)
def test_of_an_operation_is_told_what_all_hosts_spent_from_its_beginning_to_its_end(kernel, offloaded, spent) -> None:
    groups = HostGroups("12", kernel)
    groups.place("h1", [1], [2])
    groups.place("h2", [3], [4])
    _use(kernel, "12/h1/nic", 1_000_000)
    groups.begin()
    _use(kernel, "12/h1/nic", 701_000_000)
    _use(kernel, "12/h1/application", 10_000_000)
    _use(kernel, "12/h2/application", 5_000_000)
    groups.end()
    _use(kernel, "12/h2/application", 50_000_000)
    assert groups.spent(offloaded=offloaded) == pytest.approx(spent)


def test_without_groups_processes_account_for_themselves() -> None:
    groups = HostGroups("12", ProcessTimes("a test"))
    groups.place("h1", [1], [])
    groups.begin()
    groups.end()
    assert groups.spent(offloaded=False) == {}
