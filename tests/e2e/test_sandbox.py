"""The sandbox leaves nothing behind, whoever is killed and whenever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from experiments.processes import Process
from tests.e2e.pretended_host import PretendedHost, children, pretended_host, until
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.root, pytest.mark.e2e, needs("unshare", "nsenter", "ip", "setsid")]

CLEAN = "import sys; from experiments.ledger import Ledger; print(Ledger().clean())"


@pytest.fixture
def host() -> Iterator[PretendedHost]:
    with pretended_host() as host:
        yield host


def test_a_run_that_ends_leaves_nothing_and_hands_on_its_exit_code(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start("return 7").ready()
    code, out, err = run.ended()
    assert (code, out, err) == (7, "tidied\n", "")
    assert host.snapshot() == before


def test_a_run_shows_on_the_host_as_processes_and_one_sysctl_only(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start().ready()
    during = host.snapshot()
    pages = {f"/run/treecast/{name}" for name in (run.name, f"{run.name}.json", "sysctls.json")}
    assert set(during["run"]) - set(before["run"]) == {"/run/treecast", *pages}, (
        "the run's files are seen from inside only"
    )
    assert during["links"] == before["links"]
    assert during["mounts"] == before["mounts"]
    assert during["shared memory"] == before["shared memory"]
    assert during["sysctl"] == 65000
    assert during["network namespaces"] == before["network namespaces"] + 1
    os.kill(run.parent, signal.SIGTERM)
    run.ended()
    assert host.snapshot() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_a_run_in_good_order(host: PretendedHost, number: signal.Signals) -> None:
    before = host.snapshot()
    run = host.start().ready()
    os.kill(run.parent, number)
    assert run.ended() == (130, "tidied\n", f"treecast: interrupted by {number.name}\n")
    assert host.snapshot() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_before_the_sandbox_exists_undoes_the_sysctl(host: PretendedHost, number: signal.Signals) -> None:
    before = host.snapshot()
    run = host.start(before="print('ready', flush=True); time.sleep(1000)").ready()
    os.kill(run.parent, number)
    assert run.ended() == (130, "", f"treecast: interrupted by {number.name}\n")
    assert host.snapshot() == before


def test_a_second_ctrl_c_ends_a_run_that_will_not_stop(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start("tidy_on_go()", before="one_press_takes(0)").ready()
    assert run.line() == "working\n"
    os.kill(run.parent, signal.SIGINT)
    assert run.line() == "tidying\n"
    os.kill(run.parent, signal.SIGINT)
    assert run.ended() == (130, "", "treecast: killed; nothing of the run is left\n")
    assert host.snapshot() == before


def test_a_stop_signal_that_is_not_obeyed_in_time_kills(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start("tidy_on_go()", before="grace_is(0)").ready()
    assert run.line() == "working\n"
    os.kill(run.parent, signal.SIGINT)
    code, _, err = run.ended()
    assert (code, err) == (130, "treecast: killed; nothing of the run is left\n")
    assert host.snapshot() == before


def test_the_same_ctrl_c_passed_on_by_several_programs_is_one(host: PretendedHost) -> None:
    run = host.start("tidy_on_go()", before="one_press_takes(1000)").ready()
    assert run.line() == "working\n"
    os.kill(run.parent, signal.SIGINT)
    assert run.line() == "tidying\n"
    os.kill(run.parent, signal.SIGTERM)
    host.ask("touch", "/run/go")
    assert run.ended() == (130, "tidied\n", "treecast: interrupted by SIGINT\n")


@pytest.mark.parametrize("victim", ["init", "main"])
def test_a_killed_process_of_the_sandbox_fails_the_run_and_leaves_nothing(host: PretendedHost, victim: str) -> None:
    before = host.snapshot()
    run = host.start().ready()
    os.kill(getattr(run, victim), signal.SIGKILL)
    code, _, err = run.ended()
    assert code == 1
    assert "killed by SIGKILL" in err
    assert err.count("\n") == 1
    assert host.snapshot() == before


def test_a_killed_parent_takes_the_sandbox_along_and_cleaning_does_the_rest(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start().ready()
    members = [run.parent, run.init, run.main, *children(run.init), *children(run.main)]
    assert len(members) >= 5
    os.kill(run.parent, signal.SIGKILL)
    run.ended()
    until(lambda: not any(Process.of(pid) for pid in members), "everything has ended")
    left = host.snapshot()
    assert left["sysctl"] == 65000
    assert {**left, "sysctl": 0, "run": []} == {**before, "sysctl": 0, "run": []}
    assert "set net.core.somaxconn back" in host.python(CLEAN)
    assert host.snapshot() == before
    assert host.python(CLEAN) == "([], 0)\n"


def test_the_next_run_starts_regardless_of_what_a_killed_one_left(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start().ready()
    os.kill(run.parent, signal.SIGKILL)
    assert host.start("return 0").ready().ended()[0] == 0
    assert host.snapshot() == before


def test_a_parent_killed_before_its_child_could_ask_for_it_leaves_no_sandbox(host: PretendedHost) -> None:
    before = host.snapshot()
    run = host.start(before="wait_for_go()").ready()
    init = run.init
    os.kill(run.parent, signal.SIGKILL)
    host.ask("touch", "/run/go")
    run.ended()
    until(lambda: Process.of(init) is None, "init has ended by itself")
    host.ask("rm", "/run/go")
    host.python(CLEAN)
    assert host.snapshot() == before


def test_two_runs_at_once_do_not_meet(host: PretendedHost) -> None:
    before = host.snapshot()
    first, second = host.start().ready(), host.start().ready()
    os.kill(first.parent, signal.SIGINT)
    assert first.ended()[0] == 130
    assert host.snapshot()["sysctl"] == 65000
    assert children(second.main)
    os.kill(second.parent, signal.SIGINT)
    assert second.ended()[0] == 130
    assert host.snapshot() == before


def test_a_defect_of_the_program_shows_its_traceback_and_leaves_nothing(host: PretendedHost) -> None:
    before = host.snapshot()
    code, _, err = host.start("raise RuntimeError('broken')").ready().ended()
    assert code == 1
    assert "Traceback" in err
    assert "RuntimeError: broken" in err
    assert host.snapshot() == before


def test_orphans_are_collected_while_the_run_goes_on(host: PretendedHost) -> None:
    orphan = "subprocess.run(['sh', '-c', 'sleep 0.01 & :']); print('left', flush=True); time.sleep(1000)"
    run = host.start(orphan).ready()
    assert run.line() == "left\n"
    until(lambda: len(children(run.init)) == 2, "only main and the sleeping orphan are left below init")
    os.kill(run.parent, signal.SIGINT)
    run.ended()
