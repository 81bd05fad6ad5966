"""The private Open vSwitch for real: it starts, is nobody else's, counts exactly, and leaves nothing."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sandboxed import datapath_type, in_sandbox, needs
from topo.ovs import OvsError, PrivateOvs

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.stock, needs("ovs-vswitchd", "ovsdb-server", "ip")]

FRAMES, FRAME_BYTES = 100, 500
ETH_P_ALL = 3
BRIDGE = (
    "ovs-vsctl add-br e00 -- set bridge e00 datapath_type={} fail_mode=secure protocols=OpenFlow13"
    " -- add-port e00 e00-eth1 -- set interface e00-eth1 ofport_request=1"
    " -- add-port e00 e00-eth2 -- set interface e00-eth2 ofport_request=2"
)


def make_wires() -> None:
    for number in (1, 2):
        subprocess.run(f"ip link add e00-eth{number} type veth peer name x{number}".split(), check=True)
        for name in (f"e00-eth{number}", f"x{number}"):
            subprocess.run(["ip", "link", "set", name, "up"], check=True)


def send_frames() -> None:
    """From x1 to x2, one after the other."""
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as receiver,
    ):
        sender.bind(("x1", 0))
        receiver.bind(("x2", ETH_P_ALL))
        receiver.settimeout(10)
        for _ in range(FRAMES):
            sender.send(bytes(12) + b"\x88\xb5" + bytes(FRAME_BYTES - 14))
            receiver.recv(2048)


def forward_and_count(rundir: Path, datapath: str) -> dict[str, Any]:
    make_wires()
    with PrivateOvs(rundir / "ovs", datapath) as ovs:
        ovs.run(*BRIDGE.format(datapath).split())
        empty = ovs.dump_flows("e00").splitlines()[1:]
        ovs.run("ovs-ofctl", "-O", "OpenFlow13", "add-group", "e00", "group_id=7,type=all,bucket=output:2")
        ovs.run("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "e00", "in_port=1,actions=group:7")
        before = ovs.port_counters()
        send_frames()
        after = ovs.port_counters()
        seen: dict[str, Any] = {
            "empty": empty,
            "flows": ovs.dump_flows("e00"),
            "groups": ovs.dump_groups("e00"),
            "one": after["e00", 1] - before["e00", 1],
            "two": after["e00", 2] - before["e00", 2],
            "warnings": ovs.warnings(),
            "pids": ovs.pids,
            "stray": subprocess.run(
                ["ovs-vsctl", "--timeout=2", "show"], env={**os.environ, **ovs.env}, check=False
            ).returncode,
        }
    seen["alive"] = [pid for pid in seen["pids"].values() if Path(f"/proc/{pid}").exists()]
    seen["interfaces"] = [name for _, name in socket.if_nameindex()]
    try:
        ovs.run("ovs-vsctl", "--timeout=2", "show")
    except OvsError as error:
        seen["after stop"] = str(error)
    return seen


@pytest.mark.parametrize("datapath", ["netdev", "system"])
def test_it_forwards_counts_exactly_and_leaves_nothing(tmp_path: Path, datapath: str) -> None:
    if datapath == "system" != datapath_type():
        pytest.skip("this kernel has no openvswitch")
    seen = in_sandbox(tmp_path, lambda rundir: forward_and_count(rundir, datapath))
    assert seen["empty"] == [], "a bridge in secure mode has no flow of its own"
    assert "actions=group:7" in seen["flows"]
    assert "group_id=7,type=all,bucket=actions=output:2" in seen["groups"]
    assert (seen["one"].rx_packets, seen["one"].rx_bytes) == (FRAMES, FRAMES * FRAME_BYTES)
    assert (seen["two"].tx_packets, seen["two"].tx_bytes) == (FRAMES, FRAMES * FRAME_BYTES)
    assert seen["one"].tx_packets == seen["two"].rx_packets == 0
    # What timeval says is how long the machine kept ovs-vswitchd waiting, and nothing of the fabric.
    assert [line for line in seen["warnings"] if "|timeval|" not in line] == []
    assert seen["stray"] == 0, "the environment leads other programs to this instance"
    assert set(seen["pids"]) == {"ovsdb-server", "ovs-vswitchd"}
    assert seen["alive"] == []
    assert set(seen["interfaces"]) == {"lo", "x1", "x2", "e00-eth1", "e00-eth2"}, "bridges and taps are gone"
    assert "database connection failed" in seen["after stop"]


def two_at_once(rundir: Path) -> list[str]:
    with PrivateOvs(rundir / "one") as one, PrivateOvs(rundir / "two") as two:
        one.run("ovs-vsctl", "add-br", "b1", "--", "set", "bridge", "b1", "datapath_type=netdev")
        return [ovs.run("ovs-vsctl", "list-br").strip() for ovs in (one, two)]


def test_two_instances_do_not_see_each_other(tmp_path: Path) -> None:
    assert in_sandbox(tmp_path, two_at_once) == ["b1", ""]
