"""The kernel's own control groups: what runs in them, what it may use, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.host_groups import HostGroups
from tests.e2e.pretended_host import PretendedHost, children, pretended_host, until
from tests.e2e.sandboxed import in_sandbox, needs
from topo.cgroups.find import find
from topo.cgroups.forms import group
from topo.cgroups.groups import Directories

pytestmark = [
    pytest.mark.root,
    pytest.mark.e2e,
    needs("unshare", "nsenter", "ip", "setsid"),
    pytest.mark.skipif(not isinstance(find(), Directories), reason=find().mechanism),
]

SPIN = "while True: pass"
CLEAN = "from experiments.ledger import Ledger; print(*Ledger().clean()[0], sep='\\n')"


@pytest.fixture
def host() -> Iterator[PretendedHost]:
    with pretended_host() as host:
        yield host


def folders(*names: str) -> list[Path]:
    """The directories of a group on this machine, one in each hierarchy that has it."""
    groups = find()
    assert isinstance(groups, Directories)
    return [root / group(*names) for root in groups._roots if (root / group(*names)).exists()]


def _used(rundir: Path) -> tuple[str, int, int, bool]:
    """What two processes, one of them idle, use in their groups, and whether the other one was held back."""
    run = f"test-{os.getpid()}-{Path('/proc/self/ns/pid').stat().st_ino}"
    busy, idle = (subprocess.Popen([sys.executable, "-c", SPIN]), subprocess.Popen(["sleep", "1000"]))
    groups = HostGroups(run, nic_cpus=[max(os.sched_getaffinity(0))], nic_limit=0.2)
    try:
        groups.place("h1", [idle.pid], [busy.pid])
        assert os.sched_getaffinity(busy.pid) == {max(os.sched_getaffinity(0))}
        assert os.sched_getaffinity(idle.pid) == os.sched_getaffinity(0)
        until(lambda: groups.cpu_ns()["h1"].nic > 50_000_000, "the busy one has used 50 ms")
        stats = [folder / "cpu.stat" for folder in folders(run, "h1", "nic")]
        held = until(lambda: any("nr_throttled 0" not in file.read_text() for file in stats if file.exists()), "held")
        used = groups.cpu_ns()["h1"]
    finally:
        for process in (busy, idle):
            process.kill()
            process.wait()
        find().remove(group(run))
    assert not folders(run)
    return groups.mechanism, used.nic, used.application, held


def test_cpu_time_is_accounted_by_group_and_a_nic_has_its_own_cpus_and_limit(tmp_path: Path) -> None:
    mechanism, nic, application, held = in_sandbox(tmp_path, _used)
    assert mechanism == find().mechanism
    assert held
    assert nic >= 50_000_000 > 50 * application


@pytest.mark.parametrize("victim", ["parent", "init", "main"])
def test_whoever_is_killed_the_groups_of_a_run_go(host: PretendedHost, victim: str) -> None:
    run = host.start("in_groups()").ready()
    assert run.line() == "placed\n"
    name = run.name
    assert folders(name, "h1", "application")
    os.kill(getattr(run, victim), signal.SIGKILL)
    run.ended()
    host.python(CLEAN)
    assert not folders(name)


def test_a_group_that_somebody_else_is_in_stays_and_its_process_lives(host: PretendedHost) -> None:
    run = host.start("in_groups()").ready()
    assert run.line() == "placed\n"
    name = run.name
    enterer = subprocess.Popen(host.inside("sleep", "1000"))
    guest = int(until(lambda: children(enterer.pid), "it has entered")[0])
    try:
        find().place(group(name, "h1", "application"), [guest])
        os.kill(run.parent, signal.SIGKILL)
        run.ended()
        assert f"left the control groups of run {name}: processes" in host.python(CLEAN)
        assert enterer.poll() is None
    finally:
        os.kill(guest, signal.SIGKILL)
        enterer.wait()
    assert f"removed what run {name} left" in host.python(CLEAN)
    assert not folders(name)
