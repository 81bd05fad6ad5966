"""The console at a terminal: keys do what they do in any shell, and what fails is a line and not the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.results import Summary
from tests.e2e.command import NEEDS
from tests.e2e.sandboxed import needs
from tests.e2e.terminal import CTRL_C, CTRL_D, Typed

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

PROMPT = "treecast> "


def test_keys_failures_and_stops_are_survived(tmp_path: Path) -> None:
    console = Typed(["cli", "--topo", "single,hosts=4", "--output", "results"], tmp_path)
    console.sees(PROMPT)
    console.type("half a comma")
    console.sees("half a comma")
    console.type(CTRL_C)
    console.sees(f"\n{PROMPT}")
    console.type("sh echo beg''un; sleep 600\n")
    console.sees("begun")
    console.type(CTRL_C)
    console.sees(f"\n{PROMPT}")
    console.type("allgather 8MiB repeat\n")
    console.sees(f"\n{PROMPT}")
    console.type("wait\n")
    console.sees("wait\r\n")
    console.type(CTRL_C)
    console.sees(f"\n{PROMPT}")
    console.type("status\n")
    console.sees("repeated")
    console.type("stop\n")
    console.sees("mcast_allgather 1, 8 MiB: stopped by hand")

    console.type("fault add host h3 kill\n")
    console.sees("fault 1: host h3 kill: done")
    console.type("allgather 256KiB\nwait\n")
    console.sees("mcast_allgather 2, 256 KiB, among 3 hosts: ")
    console.type("groups\n")
    console.sees("239.192.0.1: 3 hosts, root s1, 3 links: h1 h2 h4")
    console.type("fault add host h1 kill\nbroadcast 256KiB\nwait\n")
    console.sees("mcast_broadcast: its root h1 is missing: its endpoint was killed by SIGKILL")

    console.type("sh echo le''ft\n")
    console.sees(f"left\r\n{PROMPT}")  # what is typed before a prompt is there is no key to it yet
    console.type(CTRL_D)
    assert console.ended() == 1, "since an operation was refused"
    stopped, verified = Summary.read(tmp_path / "results" / "latest").runs
    assert (stopped.verified, stopped.error, stopped.missing) == (False, "stopped by hand", [])
    assert (verified.verified, verified.hosts) == (True, ["h1", "h2", "h4"])
