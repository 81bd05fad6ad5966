"""Nothing of a real run stays behind, whatever of it is stopped or killed in mid-operation, and the next one works."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import (
    NEEDS,
    Command,
    Traces,
    children,
    descendants,
    host_state,
    run,
    start,
    treecast,
    until,
    words,
)
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

LONG = ("--topo", "single,hosts=3", "--bw", "1M", "--size", "4MiB")
"""Takes more than a minute, were it left alone."""
OPERATION = "mcast_allgather "
"""What is said when the first operation begins."""
BOUND_S = 30.0
"""In which a run that was struck ends."""


@dataclass(frozen=True)
class Operating:
    """A run in mid-operation: the command, what there was on the machine before it, and what there is of it."""

    command: Command
    before: dict[str, Any]
    traces: Traces

    @property
    def init(self) -> int:
        """The sandbox's first process."""
        [pid] = children(self.command.pid)
        return pid

    @property
    def main(self) -> int:
        """The process that does the run."""
        return children(self.init)[0]

    def pid(self, *marks: str) -> int:
        """The only process of the run whose command line has all ``marks``."""
        [pid] = [pid for pid in descendants(self.command.pid) if all(mark in words(pid) for mark in marks)]
        return pid

    def endpoint(self, host: str) -> int:
        """The endpoint of a host: the process in the network namespace of the host's shell that is no shell."""
        shell = self.pid(f"mininet:{host} ")
        [pid] = [pid for pid in children(self.main) if pid != shell and _network(pid) == _network(shell)]
        return pid

    def gone(self) -> None:
        """Assert that nothing is left, and that the machine is as it was."""
        until(lambda: not self.traces.left(), "all processes have ended")
        assert host_state() == self.before


def _network(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


@pytest.fixture
def operating(tmp_path: Path) -> Iterator[Operating]:
    before = host_state()
    command = start(tmp_path / "struck", *LONG, "--capture", "h1")
    try:
        command.says(OPERATION)
        yield Operating(command, before, Traces.of(command.pid))
    finally:
        command.kill()
        treecast(tmp_path / "clean", "clean")


def test_what_is_looked_for_is_there_while_a_run_is_on(operating: Operating) -> None:
    spaces = [name.partition(":")[0] for name in operating.traces.namespaces]
    assert spaces.count("net") == 4, "the sandbox's and three hosts'"
    assert spaces.count("pid") == 1
    assert len(operating.traces.processes) > 10
    assert len(operating.traces.left()) == len(operating.traces.processes) + len(spaces)
    now = host_state()
    changed = {kind for kind in now if now[kind] != operating.before[kind]}
    assert changed <= {"ledger", "sysctls", "control groups"}, "all else happens in the sandbox"
    assert "ledger" in changed


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.stock), signal.SIGTERM])
def test_a_stop_signal_ends_a_run_and_leaves_nothing(operating: Operating, number: signal.Signals) -> None:
    os.kill(operating.command.pid, number)
    done = operating.command.ended(BOUND_S)
    assert (done.code, done.err) == (130, f"treecast: interrupted by {number.name}\n")
    assert operating.traces.left() == []
    assert host_state() == operating.before
    assert not os.path.lexists(done.latest), "there are no results to point at"


def test_a_killed_parent_leaves_what_clean_removes(operating: Operating, tmp_path: Path) -> None:
    os.kill(operating.command.pid, signal.SIGKILL)
    assert operating.command.ended(BOUND_S).code == -signal.SIGKILL
    done = treecast(tmp_path / "clean", "clean")
    assert (done.code, done.err) == (0, "")
    assert f"removed what run {operating.command.pid} left, which had been killed" in done.out
    operating.gone()


def test_the_next_run_needs_no_clean(operating: Operating, tmp_path: Path) -> None:
    os.kill(operating.command.pid, signal.SIGKILL)
    operating.command.ended(BOUND_S)
    run(tmp_path / "next", "--topo", "single,hosts=2", "--size", "64KiB").verified()
    operating.gone()


def test_a_run_whose_sandbox_is_killed_says_so_and_leaves_nothing(operating: Operating) -> None:
    os.kill(operating.init, signal.SIGKILL)
    done = operating.command.ended(BOUND_S)
    assert (done.code, done.err) == (1, "treecast: the run was killed by SIGKILL; nothing of it is left\n")
    operating.gone()


def test_a_run_whose_main_process_is_killed_says_so_and_leaves_nothing(operating: Operating) -> None:
    os.kill(operating.main, signal.SIGKILL)
    done = operating.command.ended(BOUND_S)
    assert (done.code, done.err) == (1, "treecast: the run's main process was killed by SIGKILL\n")
    operating.gone()


def test_a_run_without_the_switches_database_ends_and_says_so(operating: Operating) -> None:
    os.kill(operating.pid("ovsdb-server ", "--pidfile"), signal.SIGKILL)
    assert_ends_naming(operating, "ovsdb-server ended unasked with status -9")


def test_a_run_that_goes_on_without_an_endpoint_ends_when_it_is_told_to(operating: Operating) -> None:
    os.kill(operating.endpoint("h2"), signal.SIGKILL)
    os.kill(operating.command.pid, signal.SIGTERM)
    assert operating.command.ended(BOUND_S).code == 130
    operating.gone()


def test_a_run_without_a_capture_ends_and_names_it(operating: Operating) -> None:
    os.kill(operating.pid("-m endpoints.io.capture"), signal.SIGKILL)
    assert_ends_naming(operating, "the capture of h1 ended unasked with status -9")


def assert_ends_naming(operating: Operating, what: str) -> None:
    done = operating.command.ended(BOUND_S)
    assert done.code == 1
    [line] = done.err.splitlines()
    assert line.startswith(f"treecast: {what}")
    operating.gone()
