"""Captures of a run: one process for each chosen host or link, bound before any traffic, drained after the last."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from experiments.errors import ExperimentFailed, complain
from experiments.folder import ResultFolder
from experiments.scenario import Scenario
from experiments.targets import capture_target
from topo.fabric import Fabric, interface
from topo.mininet_net import EmulatedFabric
from topo.tc import inside

TIMEOUT_S = 30.0
READY = b"ready\n"


def target_interface(fabric: Fabric, target: str) -> tuple[str, str]:
    """(node, interface) at which a target is captured: a host's own, a link's at its lower end."""
    if target in fabric.host:
        return target, interface(target, 0)
    one, other = target.split("-")
    return one, interface(one, fabric.port_to[one][other])


class Capture:
    """One running capture."""

    def __init__(self, target: str, command: list[str]) -> None:
        self.target = target
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ready(self) -> None:
        """Wait until it is bound; :class:`ExperimentFailed` if it does not get there."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], TIMEOUT_S)[0] or self._process.stdout.readline() != READY:
            raise ExperimentFailed(f"the capture of {self.target} did not start")

    def check(self) -> None:
        """:class:`ExperimentFailed` if it has ended."""
        if self._process.poll() is not None:
            raise ExperimentFailed(f"the capture of {self.target} ended unasked with status {self._process.returncode}")

    def end(self) -> str | None:
        """Let it write the last frames; what is wrong with the file, if anything is."""
        try:
            last, _ = self._process.communicate(timeout=TIMEOUT_S)  # the end of its input is its sign to end
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return f"the capture of {self.target} did not end in {TIMEOUT_S:g} s and was killed"
        if self._process.returncode != 0:
            return f"the capture of {self.target} ended with status {self._process.returncode}"
        lost = int(last)
        return f"the capture of {self.target} lacks {lost} frames: this machine was too slow for it" if lost else None


class Captures:
    """Captures that are started and stopped by hand, into the same folder as a scenario's; a context manager."""

    def __init__(self, scenario: Scenario, net: EmulatedFabric, folder: ResultFolder) -> None:
        self._scenario = scenario
        self._net = net
        self._folder = folder
        self._running: list[tuple[Capture, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, targets: Sequence[str]) -> list[str]:
        """Capture hosts and links from now on, as they are called; UserError for what is none."""
        scenario = self._scenario
        names = [capture_target(scenario.fabric, scenario.by_rank, target) for target in targets]
        directory = self._folder.subfolder("captures")
        begun = []
        for name in dict.fromkeys(names):
            path = _free(directory, name)
            begun.append((_started(scenario.fabric, self._net, name, path), path))
        self._running += begun
        for capture, _ in begun:
            capture.ready()
        return names

    def stop(self) -> list[Path]:
        """End all; their files."""
        running, self._running = self._running, []
        for complaint in [capture.end() for capture, _ in running]:
            if complaint is not None:
                complain(complaint)
        return [path for _, path in running]


def _free(directory: Path, target: str) -> Path:
    """A name that no file has."""
    number = 1
    while (path := directory / (f"{target}.pcapng" if number == 1 else f"{target}-{number}.pcapng")).exists():
        number += 1
    return path


@contextmanager
def captures(scenario: Scenario, net: EmulatedFabric, folder: ResultFolder) -> Iterator[tuple[Capture, ...]]:
    """Capture every target of the scenario into ``captures/<target>.pcapng`` of the result folder."""
    running: list[Capture] = []
    try:
        for target in dict.fromkeys(scenario.capture):  # a host may have been named twice, as h1 and 0
            directory = folder.subfolder("captures")
            running.append(_started(scenario.fabric, net, target, directory / f"{target}.pcapng"))
        for capture in running:
            capture.ready()
        yield tuple(running)
    finally:
        for complaint in [capture.end() for capture in running]:
            if complaint is not None and sys.exception() is None:
                complain(complaint)


def _started(fabric: Fabric, net: EmulatedFabric, target: str, output: Path) -> Capture:
    node, port = target_interface(fabric, target)
    return Capture(target, inside(net.namespace_of(node), _command(port, output)))


def _command(port: str, output: Path) -> list[str]:
    return [sys.executable, "-m", "endpoints.io.capture", "--interface", port, "--output", str(output)]
