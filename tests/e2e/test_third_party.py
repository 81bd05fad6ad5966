"""A third-party program's multicast over the fabric: iperf joins by IGMP, sends, and only members receive."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from experiments.controller_process import ControllerProcess
from tests.e2e.command import NEEDS
from tests.e2e.sandboxed import datapath_type, in_sandbox, needs
from topo.counters import Counters
from topo.fabric import Fabric, interface
from topo.mininet_net import EmulatedFabric
from topo.ovs import PrivateOvs
from topo.registry import parse_topology
from topo.shaping import LinkSpec
from topo.tc import inside

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.stock, needs(*NEEDS, "iperf")]

FABRIC = "leafspine,leaves=2,spines=2,hosts=2"
GROUP = "239.1.1.1"
SENDER, MEMBERS, STRANGER = "h1", ("h2", "h3"), "h4"
DATAGRAMS, BYTES = 200, 1000
"""Asked for; iperf sends one more, which says that it has finished."""
FRAME = 14 + 20 + 8 + BYTES
WAIT_S = 30.0


@dataclass(frozen=True)
class Seen:
    """What iperf's receivers said, and what each host's link carried towards it, in frames and bytes."""

    reports: dict[str, str]
    received: dict[str, tuple[int, int]]
    left: list[str]


def iperf_over_the_fabric(rundir: Path) -> Seen:
    fabric = parse_topology(FABRIC)
    spec = LinkSpec(rate_bps=50_000_000)
    with (
        PrivateOvs(rundir / "ovs", datapath_type()) as ovs,
        ControllerProcess(fabric, rundir, rundir / "controller.log") as controller,
        EmulatedFabric(fabric, spec, ovs, controller.port) as net,
    ):

        def programmed(members: set[str]) -> Callable[[dict[str, Any]], bool]:
            return lambda e: e["event"] == "programmed" and set(e["groups"].get(GROUP, ())) == members

        connected = len(fabric.switches)
        controller.wait_for(lambda e: e["event"] == "switch" and e["connected"] == connected, WAIT_S, "to connect")
        receivers = {
            host: subprocess.Popen(
                inside(net.host_pid(host), ["iperf", "-s", "-u", "-B", GROUP, "-y", "C", "-P", "1"]),
                stdout=subprocess.PIPE,
                text=True,
            )
            for host in MEMBERS
        }
        controller.wait_for(programmed(set(MEMBERS)), WAIT_S, "to program the members' tree")
        before = net.interface_counters()
        send = ["iperf", "-c", GROUP, "-u", "-T", "8", "-l", str(BYTES), "-b", "4M", "-n", str(DATAGRAMS * BYTES)]
        subprocess.run(inside(net.host_pid(SENDER), send), check=True, capture_output=True, timeout=WAIT_S)
        reports = {host: receiver.communicate(timeout=WAIT_S)[0] for host, receiver in receivers.items()}
        after = net.interface_counters()
        controller.wait_for(programmed(set()), WAIT_S, "to forget the members that have left")
        left = [switch.name for switch in fabric.switches if "bucket" in ovs.dump_groups(switch.name)]
    received = {host.name: _towards(host.name, fabric, before, after) for host in fabric.hosts}
    return Seen(reports, received, left)


def _towards(host: str, fabric: Fabric, before: dict[str, Counters], after: dict[str, Counters]) -> tuple[int, int]:
    switch = fabric.edge_of[host]
    name = interface(switch, fabric.port_to[switch][host])
    moved = after[name] - before[name]
    return moved.tx_packets, moved.tx_bytes


def test_members_receive_every_datagram_and_others_none(tmp_path: Path) -> None:
    seen = in_sandbox(tmp_path, iperf_over_the_fabric)
    sent = seen.received[MEMBERS[0]][0]
    assert sent >= DATAGRAMS
    for member in MEMBERS:
        assert seen.received[member] == (sent, sent * FRAME)
        lost, total = seen.reports[member].split(",")[10:12]
        assert (int(lost), int(total)) == (0, sent), "iperf has missed none"
    assert seen.received[STRANGER] == seen.received[SENDER] == (0, 0)
    assert seen.left == [], "the tree is gone with its last member"
