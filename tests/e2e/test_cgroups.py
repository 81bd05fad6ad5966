"""The kernel's own control groups: what runs in them, what it may use, and that none is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.errors import EnvironmentMissing
from experiments.host_groups import Cpu, HostGroups
from tests.e2e.command import NEEDS
from tests.e2e.command import run as treecast_run
from tests.e2e.pretended_host import PretendedHost, children, pretended_host, until
from tests.e2e.sandboxed import in_sandbox, needs
from topo.cgroups.find import find
from topo.cgroups.forms import group
from topo.cgroups.groups import Directories

pytestmark = [
    pytest.mark.root,
    pytest.mark.e2e,
    pytest.mark.stock,
    needs("unshare", "nsenter", "setsid", *NEEDS),
    pytest.mark.skipif(not isinstance(find(), Directories), reason=find().mechanism),
]

SPIN = "while True: pass"
CLEAN = "from experiments.ledger import Ledger; print(*Ledger().clean()[0], sep='\\n')"


@pytest.fixture
def host() -> Iterator[PretendedHost]:
    with pretended_host() as host:
        yield host


@contextmanager
def placed(nic: subprocess.Popen[bytes]) -> Iterator[HostGroups]:
    """A run of one host whose NIC is a process, and whose application is another, idle one."""
    run = f"test-{os.getpid()}-{Path('/proc/self/ns/pid').stat().st_ino}"
    application = subprocess.Popen(["sleep", "1000"])
    groups = HostGroups(run)
    try:
        groups.place("h1", [application.pid], [nic.pid])
        yield groups
    finally:
        for process in (nic, application):
            process.kill()
            process.wait()
        find().remove(group(run))
        find().tidy()
    assert run not in find().runs()


def _held_back(rundir: Path) -> tuple[str, Cpu]:
    """What is used in each of two groups in some time, when the one that is limited has been held back."""
    with placed(subprocess.Popen([sys.executable, "-c", SPIN])) as groups:
        groups.limit_nics(0.5)
        until(lambda: groups.cpu_ns()["h1"].nic > 50_000_000, "both processes have started")
        before = groups.cpu_ns()["h1"]
        until(lambda: (groups.cpu_ns()["h1"] - before).nic > 200_000_000, "the busy one has used 200 ms more")
        stats = list(Path("/sys/fs/cgroup").glob("**/treecast/*/h1/nic/cpu.stat"))
        until(lambda: any(re.search("nr_throttled [1-9]", file.read_text()) for file in stats), "it is held back")
        return groups.mechanism, groups.cpu_ns()["h1"] - before


def _pinned(rundir: Path) -> set[int] | str:
    """The CPUs of a NIC that was given one of them; why that is not possible."""
    nic = subprocess.Popen(["sleep", "1000"])
    try:
        with placed(nic) as groups:
            groups.pin_nics({max(os.sched_getaffinity(0))})
            return os.sched_getaffinity(nic.pid)
    except EnvironmentMissing as problem:
        return str(problem)


def test_cpu_time_is_accounted_by_group_and_a_limit_holds(tmp_path: Path) -> None:
    mechanism, used = in_sandbox(tmp_path, _held_back)
    assert mechanism == find().mechanism
    assert used.nic > 10 * used.application


def test_a_nic_has_cpus_of_its_own(tmp_path: Path) -> None:
    cpus = in_sandbox(tmp_path, _pinned)
    if isinstance(cpus, str):
        pytest.skip(cpus)
    assert cpus == {max(os.sched_getaffinity(0))}


@pytest.mark.parametrize("victim", ["parent", "init", "main"])
def test_whoever_is_killed_the_groups_of_a_run_go(host: PretendedHost, victim: str) -> None:
    run = host.start("in_groups()").ready()
    assert run.line() == "placed\n"
    name = run.name
    assert name in find().runs()
    os.kill(getattr(run, victim), signal.SIGKILL)
    run.ended()
    host.python(CLEAN)
    assert name not in find().runs()


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
    assert name not in find().runs()


def test_a_run_whose_nics_have_cpus_and_a_limit_is_verified_and_says_who_spent_what(tmp_path: Path) -> None:
    cpus = ("--nic-cpus", "0") if "cpuset" in find().mechanism else ()
    nics = ("--offload", "nic", "--nic-limit", "0.5", *cpus)
    finished = treecast_run(tmp_path, "--topo", "single,hosts=2", "--size", "64KiB", *nics)
    run = finished.verified()
    assert run.cpu.keys() == {"nic", "application"}
    assert min(run.cpu.values()) > 0
    assert finished.summary.platform.accounting == find().mechanism


def test_cpus_that_nics_cannot_have_are_told_in_one_line(tmp_path: Path) -> None:
    finished = treecast_run(tmp_path, "--topo", "single,hosts=2", "--offload", "nic", "--nic-cpus", "4095")
    assert finished.code == 3
    assert finished.err.startswith("treecast: a NIC cannot be given its CPUs: ")
    assert len(finished.err.splitlines()) == 1
