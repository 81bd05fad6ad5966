"""Captures of a run: one process for each chosen host or link, bound before any traffic, drained after the last."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.errors import ExperimentFailed
from experiments.folder import ResultFolder
from experiments.scenario import Scenario
from topo.fabric import Fabric, interface
from topo.mininet_net import EmulatedFabric
from topo.tc import inside

TIMEOUT_S = 30.0


def target_interface(fabric: Fabric, target: str) -> tuple[str, str]:
    """(node, interface) at which a target is captured: a host's own, a link's at its lower end."""
    if target in fabric.host:
        return target, interface(target, 0)
    one, other = target.split("-")
    return one, interface(one, fabric.port_to[one][other])


@contextmanager
def captures(scenario: Scenario, net: EmulatedFabric, folder: ResultFolder) -> Iterator[None]:
    """Capture every target of the scenario into ``captures/<target>.pcapng`` of the result folder."""
    running: list[tuple[str, subprocess.Popen[bytes]]] = []
    try:
        for target in scenario.capture:
            directory = folder.subfolder("captures")
            node, port = target_interface(scenario.fabric, target)
            pid = net.host_pid(node) if node in scenario.fabric.host else None
            running.append((target, _start(pid, port, directory / f"{target}.pcapng")))
        for target, process in running:
            assert process.stdout is not None
            if not select.select([process.stdout], [], [], TIMEOUT_S)[0] or process.stdout.readline() != b"ready\n":
                raise ExperimentFailed(f"the capture of {target} did not start")
        yield
    finally:
        for target, process in running:
            assert process.stdin is not None
            process.stdin.close()
            if process.wait(TIMEOUT_S) != 0:
                sys.stderr.write(f"treecast: the capture of {target} ended with status {process.returncode}\n")


def _start(pid: int | None, port: str, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "endpoints.io.capture", "--interface", port, "--output", str(output)]
    return subprocess.Popen(inside(pid, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
