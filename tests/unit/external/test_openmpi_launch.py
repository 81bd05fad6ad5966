"""How Open MPI is started, as text, and what the shell makes of it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from experiments.external.openmpi import launch
from experiments.external.site import Place

PLACES = (Place("h1", "10.0.0.2", "h1-eth0", 41), Place("h2", "10.0.0.3", "h2-eth0", 42))


def test_ranks_are_on_the_hosts_in_their_order_one_on_each() -> None:
    assert launch.hostfile(PLACES).splitlines() == ["10.0.0.2 slots=1", "10.0.0.3 slots=1"]


def test_mpirun_enters_the_first_host_like_the_others_and_uses_only_the_fabric(tmp_path: Path) -> None:
    shell, agent, host, line = launch.command(tmp_path, PLACES, {"coll_x": "4"}, ["python3", "-m", "worker", "a b"])
    words = shlex.split(line)
    assert (shell, host) == ("sh", "10.0.0.2")
    assert words[0] == "mpirun.openmpi"
    assert words[-4:] == ["python3", "-m", "worker", "a b"]
    given = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "--mca"}
    assert given["plm_rsh_agent"] == f"sh {agent}"
    assert given["btl"] == "tcp,self", "no shared memory between hosts that are one machine"
    assert given["btl_tcp_if_include"] == given["oob_tcp_if_include"] == "10.0.0.0/8"
    assert given["orte_tmpdir_base"] == str(tmp_path)
    assert given["coll_x"] == "4"


@pytest.fixture
def stand_ins(tmp_path: Path) -> dict[str, str]:
    """An environment whose mnexec and unshare only say how they were called, then run the command."""
    for name in ("mnexec", "unshare"):
        program = tmp_path / name
        count = 2 if name == "mnexec" else 1
        program.write_text(f'#!/bin/sh\necho {name} "$@" | head -n 1 >&2\nshift {count}\nexec "$@"\n')
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_the_remote_shell_enters_the_namespaces_of_the_host_that_is_named(
    tmp_path: Path, stand_ins: dict[str, str]
) -> None:
    text = launch.agent(PLACES).replace("/proc/sys/kernel/hostname", str(tmp_path / "hostname"))
    (tmp_path / "agent").write_text(text)
    command = ["sh", str(tmp_path / "agent"), "10.0.0.3", "X=1; export X; echo", "'a  b'", "$X"]
    done = subprocess.run(command, env=stand_ins, capture_output=True, text=True, check=True)
    assert done.stdout == "a  b 1\n", "the words are joined and read by a shell, as by ssh"
    assert done.stderr.splitlines()[0].startswith("mnexec -a 42 unshare --uts")
    assert (tmp_path / "hostname").read_text() == "h2\n"


def test_the_remote_shell_refuses_an_address_that_no_host_has(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text(launch.agent(PLACES))
    done = subprocess.run(
        ["sh", str(tmp_path / "agent"), "10.0.0.9", "true"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 255
    assert done.stderr == "no emulated host has the address 10.0.0.9\n"
