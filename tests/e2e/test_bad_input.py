"""Bad input and a machine that lacks something: the real command says one clear line, and starts nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import TREECAST
from topo.platform import PROGRAMS

pytestmark = pytest.mark.e2e

WATCHED = """
import runpy, sys

def watch(event, arguments):
    if event == "subprocess.Popen" or event in {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}:
        sys.stderr.write(f"STARTED {event} {arguments}\\n")

sys.addaudithook(watch)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a Python program, here the console script itself, and says so whenever it starts a process."""

NOBODY = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
)  # fmt: skip
"""Starts a program without root; it may read everything, since a checkout can be in a home that is closed to others."""


def refused(folder: Path, *arguments: str, path: str | None = None, prefix: tuple[str, ...] = ()) -> tuple[int, str]:
    """Exit code and the one line of ``treecast …``, which must not have made anything in ``folder``."""
    before = sorted(folder.rglob("*"))
    done = subprocess.run(
        [*prefix, sys.executable, "-c", WATCHED, TREECAST, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **({"PATH": path} if path else {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == ""
    assert sorted(folder.rglob("*")) == before, "something was left"
    started = [line for line in done.stderr.splitlines() if line.startswith("STARTED")]
    if path is None:
        assert not started, "something was started"
    else:
        assert not [line for line in started if "fork" in line], "a run was begun"
    (line,) = [line for line in done.stderr.splitlines() if line not in started]
    assert line.startswith("treecast: ")
    return done.returncode, line


WRONG = [
    (("--topo", "fattree,k=5"), "--topo: fattree: k=5 is odd, a fat tree's switches have an even number of ports"),
    (("--topo", "hypercube"), "--topo: unknown topology 'hypercube': known are fattree"),
    (("--bw", "0"), "--bw '0': must be above 0"),
    (("--mtu", "1500"), "--mtu 1500: not a RoCE path MTU, which are 256, 512, 1024, 2048, 4096 bytes"),
    (("--size", "1GiB", "--mtu", "256"), "use a larger mtu, a smaller size"),
    (("--input", "nothing.bin"), "--input 'nothing.bin': No such file or directory"),
    (("nothing.yaml",), "scenario 'nothing.yaml': No such file or directory"),
    (("broken.yaml",), "scenario 'broken.yaml', line 2: not YAML"),
    (("--capture", "h17"), "--capture 'h17': no such host, fattree has h1 to h16"),
    (("--impair", "drop:rx:h17:5%"), "--impair drop 'h17': no such host"),
    (("--algorithm", "telepathy"), "unknown algorithm 'telepathy': known are binary_tree_broadcast"),
    (("--iterations", "often"), "--iterations 'often': must be a whole number"),
    (("--speed", "50"), "No such option: --speed"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_wrong_input_is_one_clear_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "broken.yaml").write_text("topology: fattree\nmtu: 4096: 5\n")
    code, line = refused(tmp_path, "run", *arguments)
    assert code == 2
    assert words in line


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="dropping root needs root and setpriv")
def test_without_root_a_run_is_refused_as_wrong_usage(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    code, line = refused(tmp_path, "run", "--topo", "single", prefix=NOBODY)
    assert code == 2
    assert line == "treecast: run: network namespaces need root; run it as root or with sudo"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="without root, that is what is complained about")
def test_without_open_vswitch_a_run_is_refused_with_the_package_that_brings_it(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", *(need.name for need in PROGRAMS if not need.name.startswith("ovs"))):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    code, line = refused(tmp_path, "run", "--topo", "single", path=str(programs))
    assert code == 3
    assert "missing: ovs-vswitchd (the switches)" in line
    assert "apt-get install openvswitch-switch" in line
