"""Lines for ip and tc in one process: whoever refuses a line is named with its own words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from topo import tc
from topo.tc import BatchError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs are found first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_all_lines_go_to_one_process_in_order(programs: Path, tmp_path: Path) -> None:
    program(programs, "ip", f'echo "$@" >> {tmp_path}/calls; cat > {tmp_path}/lines')
    tc.batch("ip", (f"link set dev x{i} up" for i in range(3)))
    assert (tmp_path / "calls").read_text() == "-batch -\n"
    assert (tmp_path / "lines").read_text() == "link set dev x0 up\nlink set dev x1 up\nlink set dev x2 up\n"


def test_no_lines_need_no_process(programs: Path) -> None:
    program(programs, "ip", "exit 1")
    tc.batch("ip", [])


def test_a_refused_line_is_told_with_the_programs_complaint(programs: Path) -> None:
    program(programs, "tc", 'echo "Error: Invalid handle." >&2; echo "Command failed -:2" >&2; exit 1')
    with pytest.raises(BatchError, match=r"^tc -batch -: Error: Invalid handle\.\nCommand failed -:2$"):
        tc.batch("tc", ["qdisc replace dev lo root handle zz: htb"])


def test_a_program_that_says_nothing_is_told_with_its_exit_status(programs: Path) -> None:
    program(programs, "tc", "exit 7")
    with pytest.raises(BatchError, match=r"^tc qdisc show: exit status 7$"):
        tc.run(None, "tc", "qdisc", "show")


def test_a_program_that_is_not_there_is_named(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(BatchError, match=r"^tc qdisc show: .*No such file"):
        tc.run(None, "tc", "qdisc", "show")


def test_a_program_that_does_not_answer_is_named(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tc, "TIMEOUT_S", 0.01)
    program(programs, "tc", "exec sleep 100")
    with pytest.raises(BatchError, match=r"^tc qdisc show: no answer in 0\.01 s$"):
        tc.run(None, "tc", "qdisc", "show")


def test_a_command_in_a_hosts_namespaces_goes_through_mnexec(programs: Path) -> None:
    assert tc.inside(123, ["ip", "link"]) == ["mnexec", "-a", "123", "ip", "link"]
    assert tc.inside(None, ["ip", "link"]) == ["ip", "link"]
    program(programs, "mnexec", 'echo "$@"')
    assert tc.run(123, "ip", "link") == "-a 123 ip link\n"


def test_qdiscs_are_told_by_interface(programs: Path) -> None:
    program(programs, "tc", """echo '[{"kind": "htb", "dev": "a"}, {"kind": "netem", "dev": "a"}, {"dev": "b"}]'""")
    assert tc.qdiscs() == {"a": [{"kind": "htb", "dev": "a"}, {"kind": "netem", "dev": "a"}], "b": [{"dev": "b"}]}
    program(programs, "tc", "exit 0")
    assert tc.qdiscs() == {}


def test_the_real_tc_names_the_line_that_it_refuses() -> None:
    if subprocess.run(["which", "tc"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs tc")
    with pytest.raises(BatchError, match=r"(?s)^tc -batch -: .*Command failed -:2"):
        tc.batch("tc", ["qdisc show dev lo", "no such command"])
