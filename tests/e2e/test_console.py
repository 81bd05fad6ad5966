"""The console, fed by a script: it does what it is told, goes on after errors, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from experiments.results import Summary
from tests.e2e.command import NEEDS, Command, Traces, host_state, run, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

SMALL = ("--topo", "single,hosts=3")


def script(folder: Path, *lines: str) -> tuple[str, ...]:
    """The options for a script with these lines."""
    path = folder / "script"
    path.write_text("".join(f"{line}\n" for line in lines))
    return "--script", str(path)


def test_what_is_done_by_hand_is_saved_as_a_scenario_that_repeats_it(tmp_path: Path) -> None:
    saved = tmp_path / "found.yaml"
    steps = (
        *("allgather 1MiB", "fault add host h2 rx drop 5%", "status", "wait", "fault clear 1"),
        *("capture start h1", "allgather 1MiB", "wait", "capture stop", "groups", "trees", "ports", "stats"),
        *("timeline", "py 6 * 7", "h1 ping -c 1 h2", f"history save {saved}"),
    )
    results = tmp_path / "console-results"
    done = treecast(tmp_path, "cli", *SMALL, *script(tmp_path, *steps), "--output", str(results))
    assert (done.code, done.err) == (0, "")
    for text in ("mcast_allgather 2, 1 MiB: ", "fault 1: host h2 rx drop 5%: live", "\n42\n", "1 received"):
        assert text in done.out
    summary = Summary.read(results / "latest")
    assert [one.verified for one in summary.runs] == [True, True]
    assert summary.runs[0].packets.recovered > 0
    assert (results / "latest/captures/h1.pcapng").stat().st_size > 1 << 20

    again = run(tmp_path / "again", str(saved))
    assert again.code == 0, again.err
    assert [one.verified for one in again.summary.runs] == [True, True]
    [fault] = again.summary.faults
    assert (fault.fault, fault.outcome) == ("host h2 rx drop 5%", "cleared")


def test_errors_are_lines_and_not_the_end_but_a_script_with_any_fails(tmp_path: Path) -> None:
    steps = (
        *("nonsense", "fault add host h9 kill", "allgather much", "fault clear 3", "reduce_scatter 1001"),
        *("broadcast 1001", "wait", "reduce_scatter 1KiB", "wait", "py 'still ' + 'here'"),
    )
    done = treecast(tmp_path, "cli", *SMALL, *script(tmp_path, *steps), "--output", str(tmp_path / "results"))
    assert done.code == 1
    assert done.out.count("\nerror: ") == 5
    assert "use a multiple of 4, like 1000" in done.out
    for name in ("mcast_broadcast", "ring_reduce_scatter"):
        assert f"{name} " in done.out
    assert done.out.count("verified, ") == 2
    assert "still here" in done.out
    assert done.err == "treecast: cli: 5 commands or operations went wrong\n"


def test_a_signal_in_the_middle_of_an_operation_leaves_nothing_behind(tmp_path: Path) -> None:
    before = host_state()
    steps = ("allgather 8MiB repeat", "sh sleep 600")
    console = Command(tmp_path, "cli", *SMALL, *script(tmp_path, *steps), "--output", str(tmp_path / "results"))
    console.says("treecast> sh sleep 600")
    traces = Traces.of(console.pid)
    os.kill(console.pid, signal.SIGTERM)
    assert console.ended().code == 130
    assert traces.left() == []
    assert host_state() == before
