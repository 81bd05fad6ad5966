"""A real fabric with every host in a group and every rule confirmed, as a run has it before its proof."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from controller.plan import Plan
from experiments import runner
from experiments.controller_process import ControllerProcess
from tests.e2e.sandboxed import datapath_type
from topo.fabric import Fabric
from topo.mininet_net import EmulatedFabric
from topo.ovs import PrivateOvs
from topo.shaping import LinkSpec
from topo.tc import inside

GROUP = "239.192.0.1"
SPEC = LinkSpec(rate_bps=50_000_000)
MEMBER = f"""
import socket, sys
member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("{GROUP}") + bytes(4))
sys.stdin.read()
"""


class Programmed(NamedTuple):
    """What is up, and the plan that its switches carry out."""

    ovs: PrivateOvs
    controller: ControllerProcess
    net: EmulatedFabric
    plan: Plan


@contextmanager
def programmed(rundir: Path, fabric: Fabric) -> Iterator[Programmed]:
    """Up as long as the context lasts."""
    with ExitStack() as stack:
        ovs = stack.enter_context(PrivateOvs(rundir / "ovs", datapath_type()))
        controller = stack.enter_context(ControllerProcess(fabric, rundir, rundir / "controller.log"))
        net = stack.enter_context(EmulatedFabric(fabric, SPEC, ovs, controller.port))
        for host in fabric.hosts:
            command = inside(net.host_pid(host.name), [sys.executable, "-c", MEMBER])
            member = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
            assert member.stdin is not None
            stack.callback(member.stdin.close)
        yield Programmed(ovs, controller, net, runner._programmed(controller, fabric, [GROUP]))
