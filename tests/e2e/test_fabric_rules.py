"""The proof before traffic: on a real fabric, each rule that was tampered with is found and named with its switch."""

from __future__ import annotations

import os
import signal
from io import StringIO
from pathlib import Path

import pytest

from controller.plan import Plan
from experiments import runner
from experiments.errors import ExperimentFailed
from experiments.ui import PlainProgress
from tests.e2e.command import NEEDS
from tests.e2e.programmed import SPEC, programmed
from tests.e2e.sandboxed import datapath_type, in_sandbox, needs
from topo import ovs as topo_ovs
from topo.fabric import Fabric
from topo.mininet_net import EmulatedFabric
from topo.ovs import OvsError, PrivateOvs
from topo.registry import parse_topology

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

FABRIC = "leafspine,leaves=2,spines=1,hosts=1"
OFCTL = ("ovs-ofctl", "-O", "OpenFlow13")


def complaint(fabric: Fabric, ovs: PrivateOvs, plan: Plan) -> str | None:
    try:
        runner._prove(fabric, ovs, plan, PlainProgress(StringIO()))
    except ExperimentFailed as problem:
        return str(problem)
    return None


def tampered(rundir: Path) -> dict[str, str | None]:
    """What the proof says of each change, which is undone before the next."""
    fabric = parse_topology(FABRIC)
    said = {}
    with programmed(rundir, fabric) as (ovs, _, _, plan):
        said["nothing"] = complaint(fabric, ovs, plan)
        [group] = plan.rules["s0"].groups
        whole = f"group_id={group.group_id},type=all," + ",".join(f"bucket=output:{port}" for port in group.ports)
        to_h2 = f"priority=100,ip,nw_dst={fabric.host['h2'].ip}"
        up, down = fabric.port_to["l0"]["s0"], fabric.port_to["l0"]["h1"]
        for name, switch, change, undo in (
            ("bucket", "s0", ("mod-group", whole.rpartition(",bucket")[0]), ("mod-group", whole)),
            (
                "port",
                "l0",
                ("add-flow", f"{to_h2},actions=output:{down}"),
                ("add-flow", f"{to_h2},actions=output:{up}"),
            ),
            (
                "extra",
                "l1",
                ("add-flow", "priority=50,arp,actions=output:1"),
                ("--strict", "del-flows", "priority=50,arp"),
            ),
            ("foreign", "l1", ("add-flow", "priority=50,actions=NORMAL"), ("--strict", "del-flows", "priority=50")),
        ):
            ovs.run(*OFCTL, change[0], switch, *change[1:])
            said[name] = complaint(fabric, ovs, plan)
            *flags, command, rule = undo
            ovs.run(*OFCTL, *flags, command, switch, rule)
        said["undone"] = complaint(fabric, ovs, plan)
    return said


@pytest.mark.stock
def test_each_rule_that_was_tampered_with_is_named_with_its_switch(tmp_path: Path) -> None:
    said = in_sandbox(tmp_path, tampered)
    wrong = "the switches' rules are wrong"
    assert said == {
        "nothing": None,
        "bucket": f"{wrong} (2 problems): s0: missing: group 1 (ports 1,2)",
        "port": f"{wrong} (2 problems): l0: missing: priority=100,ip,nw_dst=10.0.1.2 actions=output:2",
        "extra": f"{wrong} (1 problems): l1: not in the plan: priority=50,dl_type=0x0806 actions=output:1",
        "foreign": said["foreign"],
        "undone": None,
    }
    assert said["foreign"] is not None
    assert said["foreign"].startswith(f"{wrong}: l1: unknown action NORMAL in the flow ")


def build_with_switches_that_die(rundir: Path) -> str:
    fabric = parse_topology(FABRIC)
    last_link = len(fabric.hosts) + len(fabric.switches) + len(fabric.links)
    with PrivateOvs(rundir / "ovs", datapath_type()) as ovs:

        def kill(done: int, _total: int) -> None:
            if done == last_link:
                os.kill(ovs.pids["ovs-vswitchd"], signal.SIGKILL)

        try:
            with EmulatedFabric(fabric, SPEC, ovs, 1, kill):
                return "built"
        except OvsError as problem:
            return str(problem)


def test_switches_that_die_while_the_fabric_is_built_end_the_build_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topo_ovs, "CTL_TIMEOUT_S", 2)
    assert in_sandbox(tmp_path, build_with_switches_that_die).startswith("ovs-vswitchd ended unasked with status -9")
