"""The result folder: writable or refused at once, whole files, the caller's property, never in another run's way."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments.errors import UserError
from experiments.folder import Owner, ResultFolder

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_it_is_named_by_time_and_scenario_and_has_logs(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "a" / "results", "fattree", NOW)
    assert folder.path == tmp_path / "a" / "results" / "20260203T040506Z-fattree"
    assert folder.logs.is_dir()


def test_two_runs_in_the_same_second_do_not_meet(tmp_path: Path) -> None:
    paths = {ResultFolder.create(tmp_path, "x", NOW).path for _ in range(3)}
    assert len(paths) == 3


def test_latest_points_at_the_run_that_published_last(tmp_path: Path) -> None:
    first, second = (ResultFolder.create(tmp_path, name, NOW) for name in ("one", "two"))
    for folder in (first, second):
        folder.write("summary.json", folder.path.name)
        folder.publish()
        assert (tmp_path / "latest" / "summary.json").read_text() == folder.path.name
    first.publish()
    assert (tmp_path / "latest").resolve() == first.path
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_latest_that_is_no_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    ResultFolder.create(tmp_path, "x", NOW).publish()
    assert not (tmp_path / "latest").is_symlink()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path, "x", NOW)
    folder.write("summary.json", "old")
    with (folder.path / "summary.json").open() as reader:
        folder.write("summary.json", "new and longer")
        assert reader.read() == "old"
    assert [path.name for path in folder.path.iterdir() if path.is_file()] == ["summary.json"]


def test_a_folder_that_cannot_be_written_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for base in (tmp_path / "file", tmp_path / "file" / "deeper", Path("/proc/treecast")):
        with pytest.raises(UserError, match="--output") as caught:
            ResultFolder.create(base, "x", NOW)
        assert str(base) in str(caught.value)


def test_an_unused_folder_goes_and_takes_what_was_made_for_it(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "results", "x", NOW)
    folder.subfolder("pcap")
    assert folder.discard_unused()
    assert not (tmp_path / "results").exists()
    assert tmp_path.exists()


def test_a_used_folder_stays(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "results", "x", NOW)
    (folder.logs / "switches.log").write_text("died")
    assert not folder.discard_unused()
    assert (folder.logs / "switches.log").exists()


def test_another_runs_results_outlive_an_unused_folder(tmp_path: Path) -> None:
    mine = ResultFolder.create(tmp_path / "results", "mine", NOW)
    other = ResultFolder.create(tmp_path / "results", "other", NOW)
    assert mine.discard_unused()
    assert other.path.exists()


@as_root
def test_everything_belongs_to_who_called_sudo(tmp_path: Path) -> None:
    owner = Owner.calling({"SUDO_UID": "1234", "SUDO_GID": "2345"})
    folder = ResultFolder.create(tmp_path / "a" / "results", "x", NOW, owner)
    folder.write("summary.json", "{}")
    (folder.subfolder("pcap") / "h1.pcapng").write_text("by another program")
    folder.publish()
    folder.hand_over()
    for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")):
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (1234, 2345), path
    assert tmp_path.stat().st_uid == 0


@pytest.mark.parametrize("environ", [{}, {"SUDO_UID": "1"}, {"SUDO_UID": "x", "SUDO_GID": "1"}])
def test_without_sudo_files_stay_ours(environ: dict[str, str]) -> None:
    assert Owner.calling(environ) is None
