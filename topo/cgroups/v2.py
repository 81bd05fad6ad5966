"""Control groups of version 2: one hierarchy, in which controllers have to be handed down level by level."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from topo.cgroups import forms
from topo.cgroups.groups import Directories, Unsupported


class V2(Directories):
    """The hierarchy that is mounted at ``root``. Every group accounts for CPU time, whichever controllers there are."""

    mechanism = "cgroup v2"

    def __init__(self, root: Path) -> None:
        super().__init__([root])
        self._root = root

    def cpu_ns(self, path: PurePosixPath) -> int:
        return forms.usage_ns((self._root / path / "cpu.stat").read_text())

    def pin(self, path: PurePosixPath, cpus: Collection[int]) -> None:
        self._set("cpuset", path, "cpuset.cpus", forms.cpu_list(cpus))

    def limit(self, path: PurePosixPath, cpus: float) -> None:
        self._set("cpu", path, "cpu.max", f"{forms.quota_us(cpus)} {forms.PERIOD_US}")

    def _set(self, controller: str, path: PurePosixPath, name: str, value: str) -> None:
        """Only what is asked for is handed down: at the top of the hierarchy that is the whole machine's affair."""
        if controller not in (self._root / "cgroup.controllers").read_text().split():
            raise Unsupported(f"cgroup v2 without its controller {controller}")
        try:
            for above in reversed(path.parents):
                given = self._root / above / "cgroup.subtree_control"
                if controller not in given.read_text().split():
                    self._write(given, f"+{controller}")
            self._write(self._root / path / name, value)
        except OSError as problem:
            raise Unsupported(f"{name} = {value}: {problem.strerror}") from None
