"""Pretended control groups: directories in which the kernel's files appear and go, and which follow its rules."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from topo.cgroups.v1 import V1
from topo.cgroups.v2 import V2

V1_FILES = {
    "cpuacct": {"cgroup.procs": "", "cpuacct.usage": "0\n"},
    "cpuset": {"cgroup.procs": "", "cpuset.cpus": "\n", "cpuset.mems": "\n"},
    "cpu": {"cgroup.procs": "", "cpu.cfs_period_us": "100000\n", "cpu.cfs_quota_us": "-1\n"},
}
V2_FILES = {
    "cgroup.procs": "",
    "cgroup.controllers": "\n",
    "cgroup.subtree_control": "\n",
    "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\n",
}
V2_CONTROLLED = {"cpu": {"cpu.max": "max 100000\n"}, "cpuset": {"cpuset.cpus": "\n"}}
"""What a group has besides, once a controller has been handed down to it."""


def _fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def _overwrite(file: Path, text: str) -> None:
    assert file.exists(), f"{file}: the kernel makes files, nobody else"
    file.write_text(text)


def _rmdir(folder: Path) -> None:
    inside = list(folder.iterdir())
    if any(path.is_dir() for path in inside) or (folder / "cgroup.procs").read_text():
        raise OSError(errno.EBUSY, "Device or resource busy", str(folder))
    shutil.rmtree(folder)


def _enter(procs: Path, pid: str) -> None:
    """A process is in one group of a hierarchy at a time."""
    top = procs.parent
    while (top.parent / "cgroup.procs").exists():
        top = top.parent
    for other in top.rglob("cgroup.procs"):
        other.write_text("".join(line for line in other.read_text().splitlines(keepends=True) if line != pid))
    with procs.open("a") as file:
        file.write(pid)


class PretendedV1(V1):
    """Version 1 in folders called after the controllers, with four CPUs."""

    def __init__(self, folder: Path, *controllers: str) -> None:
        self.folder = folder
        for controller in controllers:
            (folder / controller).mkdir(parents=True)
            _fill(folder / controller, V1_FILES[controller])
        if "cpuset" in controllers:
            _fill(folder / "cpuset", {"cpuset.cpus": "0-3\n", "cpuset.mems": "0\n"})
        super().__init__({controller: folder / controller for controller in controllers})

    def _mkdir(self, folder: Path) -> None:
        folder.mkdir()
        _fill(folder, V1_FILES[folder.relative_to(self.folder).parts[0]])

    def _write(self, file: Path, text: str) -> None:
        if file.name != "cgroup.procs":
            return _overwrite(file, text)
        cpus = file.with_name("cpuset.cpus")
        if cpus.exists() and not cpus.read_text().strip():
            raise OSError(errno.ENOSPC, "No space left on device", str(file))
        return _enter(file, text)

    def _rmdir(self, folder: Path) -> None:
        _rmdir(folder)


class PretendedV2(V2):
    """Version 2 in a folder, with ``controllers`` to hand down."""

    def __init__(self, folder: Path, *controllers: str) -> None:
        folder.mkdir(parents=True)
        _fill(folder, V2_FILES | {"cgroup.controllers": " ".join(controllers)})
        super().__init__(folder)

    def _mkdir(self, folder: Path) -> None:
        folder.mkdir()
        _fill(folder, V2_FILES)
        for controller in (folder.parent / "cgroup.subtree_control").read_text().split():
            self._hand_down(controller, folder)

    def _write(self, file: Path, text: str) -> None:
        if file.name == "cgroup.procs":
            if (file.with_name("cgroup.subtree_control")).read_text().split():
                raise OSError(errno.EBUSY, "Device or resource busy", str(file))  # "no internal processes"
            _enter(file, text)
        elif file.name == "cgroup.subtree_control":
            controller = text.removeprefix("+")
            if controller not in file.with_name("cgroup.controllers").read_text().split():
                raise OSError(errno.ENOENT, "No such file or directory", str(file))
            file.write_text(f"{file.read_text().strip()} {controller}\n")
            for child in file.parent.iterdir():
                if child.is_dir():
                    self._hand_down(controller, child)
        else:
            _overwrite(file, text)

    @staticmethod
    def _hand_down(controller: str, folder: Path) -> None:
        controllers = folder / "cgroup.controllers"
        controllers.write_text(f"{controllers.read_text().strip()} {controller}\n")
        _fill(folder, V2_CONTROLLED[controller])

    def _rmdir(self, folder: Path) -> None:
        _rmdir(folder)
