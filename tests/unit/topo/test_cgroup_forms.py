"""Control groups as text: mounts, names, numbers."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from topo.cgroups import forms

APART = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
TOGETHER = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
UNIFIED = "29 23 0:25 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


def test_controllers_that_are_mounted_apart_have_a_directory_each() -> None:
    cgroup = Path("/sys/fs/cgroup")
    assert forms.parse_mounts(APART) == forms.Mounts(
        {"cpu": cgroup / "cpu", "cpuacct": cgroup / "cpuacct", "cpuset": cgroup / "cpuset"}, cgroup / "unified"
    )


def test_controllers_that_are_mounted_together_share_one() -> None:
    place = Path("/sys/fs/cgroup/cpu,cpuacct")
    assert forms.parse_mounts(TOGETHER) == forms.Mounts({"cpu": place, "cpuacct": place}, None)


def test_one_hierarchy_of_version_2_is_found() -> None:
    assert forms.parse_mounts(UNIFIED) == forms.Mounts({}, Path("/sys/fs/cgroup"))


@pytest.mark.parametrize("options", [("rw,nosuid", "ro,nosuid"), ("cgroup2 rw", "cgroup2 ro")])
def test_what_is_mounted_read_only_is_not_there(options: tuple[str, str]) -> None:
    assert forms.parse_mounts(UNIFIED.replace(*options)) == forms.Mounts({}, None)


def test_a_mount_point_with_a_blank_is_read_right() -> None:
    assert forms.parse_mounts(UNIFIED.replace("/sys/fs/cgroup", r"/mnt/c\040g")).v2 == Path("/mnt/c g")


def test_a_group_is_below_that_of_all_runs() -> None:
    assert forms.group() == PurePosixPath("treecast")
    assert forms.group("4711-2", "h1", "nic") == PurePosixPath("treecast/4711-2/h1/nic")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-a", "cgroup.procs", "a b", "a\n", "ä", "x" * 64])
def test_a_name_that_is_no_plain_directory_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="control group"):
        forms.group("run", name)


def test_version_2_counts_microseconds() -> None:
    assert forms.usage_ns("usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n") == 1_234_000
    with pytest.raises(ValueError, match="no usage_usec"):
        forms.usage_ns("nr_periods 0\n")


def test_a_limit_is_a_part_of_each_period() -> None:
    assert forms.quota_us(0.25) == 25_000
    assert forms.quota_us(1.5) == 150_000
    assert forms.quota_us(0.01) == 1_000


@pytest.mark.parametrize("cpus", [0.0, 0.009, -1.0, float("inf"), float("nan")])
def test_what_is_no_limit_is_refused(cpus: float) -> None:
    with pytest.raises(ValueError, match=r"at least 0\.01"):
        forms.quota_us(cpus)


def test_a_list_of_cpus_has_numbers_and_ranges() -> None:
    assert forms.parse_cpus("0-2,5") == {0, 1, 2, 5}
    assert forms.cpu_list({5, 2, 0, 1}) == "0,1,2,5"


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1,,2", "1 ", "3-1"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="CPUs"):
        forms.parse_cpus(text)
