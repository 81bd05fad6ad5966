"""Treecast's topologies in plain Mininet: the command ``mn`` builds them from topo/mn.py, on an Open vSwitch as it is.

The sandbox stands for the user's machine: what ``mn`` does to bridges, processes and sysctls, it does there.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.sandboxed import in_sandbox, needs
from topo.fabric import interface
from topo.ovs import PrivateOvs
from topo.registry import parse_topology

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs("mn", "mnexec", "ovs-vswitchd", "ovsdb-server", "mount")]

SHIM = Path(__file__).parents[2] / "topo/mn.py"
BOUND_S = 120


class Said(NamedTuple):
    code: int
    out: str
    bridges: str


def mn(rundir: Path, topology: str, *commands: str) -> Said:
    """``mn`` builds ``topology``, its console executes ``commands``, and it takes the network down."""
    subprocess.run("mount --bind /proc/sys /proc/sys", shell=True, check=True)
    subprocess.run("mount -o remount,bind,ro /proc/sys", shell=True, check=True)  # mn would raise eleven for good
    script = rundir / "console"
    script.write_text("".join(f"{command}\n" for command in commands))
    with PrivateOvs(rundir / "ovs") as ovs:
        done = subprocess.run(
            ["mn", "--custom", SHIM, "--topo", topology, "--switch", "ovs,datapath=user,failMode=secure",
             "--controller", "none", "--pre", script, "--test", "none"],
            env={**os.environ, **ovs.env}, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=BOUND_S,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, ovs.run("ovs-vsctl", "list-br"))


def test_mn_builds_a_fat_tree_with_its_names_links_and_addresses(tmp_path: Path) -> None:
    said = in_sandbox(tmp_path, lambda rundir: mn(rundir, "fattree,k=4", "net", "h16 ip -4 -o address", "h16 ip link"))
    assert said.code == 0, said.out
    fabric = parse_topology("fattree,k=4")
    lines = [line.split() for line in said.out.splitlines()]
    for node, ports in fabric.ports.items():
        wires = {
            f"{interface(node, port)}:{interface(peer, fabric.port_to[peer][node])}" for port, peer in ports.items()
        }
        [found] = [set(line[1:]) for line in lines if line[:1] == [node] and ":" in line[-1]]
        assert found - {"lo:"} == wires
    host = fabric.host["h16"]
    assert f"inet {host.ip}/8" in said.out
    assert host.mac in said.out
    assert said.bridges == "", "mn has taken down what it built"


def test_mn_tells_a_topology_that_cannot_be_in_a_line(tmp_path: Path) -> None:
    said = in_sandbox(tmp_path, lambda rundir: mn(rundir, "fattree,k=3"))
    assert said.code != 0
    [line] = [line for line in said.out.splitlines() if "k=3" in line]
    assert line.startswith("mn: fattree: k=3 is odd")
    assert "Traceback" not in said.out
