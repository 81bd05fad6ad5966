"""Captures of a run: one process for each chosen host or link, bound before any traffic, drained after the last."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.errors import ExperimentFailed, complain
from experiments.folder import ResultFolder
from experiments.scenario import Scenario
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


@contextmanager
def captures(scenario: Scenario, net: EmulatedFabric, folder: ResultFolder) -> Iterator[tuple[Capture, ...]]:
    """Capture every target of the scenario into ``captures/<target>.pcapng`` of the result folder."""
    running: list[Capture] = []
    try:
        for target in dict.fromkeys(scenario.capture):  # a host may have been named twice, as h1 and 0
            directory = folder.subfolder("captures")
            node, port = target_interface(scenario.fabric, target)
            pid = net.host_pid(node) if node in scenario.fabric.host else None
            running.append(Capture(target, inside(pid, _command(port, directory / f"{target}.pcapng"))))
        for capture in running:
            capture.ready()
        yield tuple(running)
    finally:
        for complaint in [capture.end() for capture in running]:
            if complaint is not None and sys.exception() is None:
                complain(complaint)


def _command(port: str, output: Path) -> list[str]:
    return [sys.executable, "-m", "endpoints.io.capture", "--interface", port, "--output", str(output)]
