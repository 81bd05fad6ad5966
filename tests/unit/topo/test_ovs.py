"""Refusals of the private Open vSwitch; that it works is shown in tests/e2e."""

from __future__ import annotations

from pathlib import Path

import pytest

from topo.ovs import OvsError, PrivateOvs


def test_missing_programs_are_named_with_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OvsError, match=r"ovsdb-server.* not found: install the package openvswitch-switch"):
        PrivateOvs(tmp_path / "ovs").start()
    assert not (tmp_path / "ovs").exists()


def test_a_daemon_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for program in ("ovsdb-tool", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"):
        (bin_ / program).symlink_to("/bin/true")
    (bin_ / "ovsdb-server").write_text("#!/bin/sh\necho no room >&2\nexit 7\n")
    (bin_ / "ovsdb-server").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/bin:/usr/bin")
    with pytest.raises(OvsError, match="ovsdb-server ended at once with status 7: no room"):
        PrivateOvs(tmp_path / "ovs").start()


def test_a_failed_command_is_told_with_its_complaint(tmp_path: Path) -> None:
    with pytest.raises(OvsError, match=r"ls --no-such: .*unrecogni[sz]ed option"):
        PrivateOvs(tmp_path).run("ls", "--no-such")


def test_datapath_is_one_of_two(tmp_path: Path) -> None:
    with pytest.raises(OvsError, match=r"'netdev' .*userspace.* and 'system'"):
        PrivateOvs(tmp_path, datapath="user")


def test_every_program_is_told_the_run_directory(tmp_path: Path) -> None:
    assert PrivateOvs(tmp_path).env["OVS_RUNDIR"] == str(tmp_path)


def test_only_warnings_and_worse_are_picked_from_both_logs(tmp_path: Path) -> None:
    (tmp_path / "ovsdb-server.log").write_text("t|00001|vlog|INFO|opened\nt|00002|jsonrpc|ERR|bad\n")
    (tmp_path / "ovs-vswitchd.log").write_text("t|00003|timeval|WARN|long poll\nt|00004|x|INFO|said WARN\n")
    assert PrivateOvs(tmp_path).warnings() == ["t|00002|jsonrpc|ERR|bad", "t|00003|timeval|WARN|long poll"]


def test_stop_without_start_is_harmless(tmp_path: Path) -> None:
    PrivateOvs(tmp_path).stop()


def test_every_program_gives_up_at_some_time(tmp_path: Path) -> None:
    assert int(PrivateOvs(tmp_path).env["OVS_CTL_TIMEOUT"]) > 0
