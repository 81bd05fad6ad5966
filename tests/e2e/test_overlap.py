"""Hosts compute while their NICs communicate."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.overlap.findings import FILE, Findings, targets
from tests.e2e.command import NEEDS, treecast
from tests.e2e.sandboxed import needs
from topo.cgroups.find import find

pytestmark = [pytest.mark.root, pytest.mark.e2e, needs(*NEEDS)]


def test_a_kernel_runs_beside_a_collective_and_who_spent_what_is_told(tmp_path: Path) -> None:
    arguments = ("--topo", "single,hosts=3", "--size", "1MiB", "--bw", "20", "--part", "0.5", "--plain")
    finished = treecast(tmp_path, "overlap", *arguments, "--output", str(tmp_path / "results"))
    found = Findings.read(finished.latest / FILE)
    share = targets(found)[1]
    assert finished.code == (1 if any(target.met is False for target in targets(found)) else 0), finished.err
    assert "collective on NICs, hosts idle" in finished.out
    [entry] = found.rounds
    assert entry.alone.keys() == entry.beside.keys() == found.pinned.keys() == {"h1"}
    assert found.accounting == finished.summary.platform.accounting == find().mechanism
    kernel = entry.communication.kernel_cpu
    assert 0 < kernel < entry.beside["h1"] * 1.01
    assert 0 < entry.communication.host_cpu < kernel / 10, "the kernel is not taken for communication"
    assert 0 < share.value < 0.2, "hosts that wait do not compute"
    [run] = finished.summary.runs
    assert run.verified
    assert run.cpu.keys() == {"nic", "application"}
    assert run.cpu["application"] < run.cpu["nic"]


def test_more_hosts_than_there_are_cannot_compute(tmp_path: Path) -> None:
    finished = treecast(tmp_path, "overlap", "--topo", "single,hosts=3", "--computing", "4")
    assert finished.code == 2
    assert "--computing 4: single,hosts=3 has 3 hosts" in finished.err
