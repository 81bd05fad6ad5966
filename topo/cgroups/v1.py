"""Control groups of version 1: a hierarchy for each controller, which may be mounted together or apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from topo.cgroups import forms
from topo.cgroups.groups import Directories, Unsupported


class V1(Directories):
    """``mounts`` has the directory of each of ``forms.V1_CONTROLLERS`` that is there; cpuacct is."""

    def __init__(self, mounts: Mapping[str, Path]) -> None:
        super().__init__(mounts.values())
        self._mounts = mounts
        self.mechanism = f"cgroup v1 ({', '.join(mounts)})"

    def _made(self, folder: Path) -> None:
        """A new cpuset is empty, and takes no process until it has CPUs and memory: those of the group above it."""
        if self._mounts.get("cpuset") in folder.parents:
            for name in ("cpuset.cpus", "cpuset.mems"):
                self._write(folder / name, (folder.parent / name).read_text())

    def cpu_ns(self, path: PurePosixPath) -> int:
        return int((self._mounts["cpuacct"] / path / "cpuacct.usage").read_text())

    def pin(self, path: PurePosixPath, cpus: Collection[int]) -> None:
        self._set("cpuset", path, "cpuset.cpus", forms.cpu_list(cpus))

    def limit(self, path: PurePosixPath, cpus: float) -> None:
        self._set("cpu", path, "cpu.cfs_period_us", str(forms.PERIOD_US))
        self._set("cpu", path, "cpu.cfs_quota_us", str(forms.quota_us(cpus)))

    def _set(self, controller: str, path: PurePosixPath, name: str, value: str) -> None:
        if controller not in self._mounts:
            raise Unsupported(f"cgroup v1 without its controller {controller}")
        try:
            self._write(self._mounts[controller] / path / name, value)
        except OSError as problem:
            raise Unsupported(f"{name} = {value}: {problem.strerror}") from None
