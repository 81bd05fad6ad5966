"""Failures for real, in mid-operation: what fails is led around, what is killed is followed by another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.dumps import parse_rules
from controller.live import End, Live
from controller.plan import make_plan
from controller.prove import compare, prove
from controller.rules import SwitchRules
from experiments.controller_process import ControllerProcess
from experiments.failures import Failures
from tests.e2e.command import NEEDS, run
from tests.e2e.programmed import GROUP, programmed
from tests.e2e.sandboxed import in_sandbox, needs
from topo.fabric import Fabric
from topo.mininet_net import EmulatedFabric
from topo.ovs import PrivateOvs
from topo.registry import parse_topology

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

SHAPE = "leafspine,leaves=2,spines=2,hosts=2"
BOUND_S = 20.0


@dataclass
class Breakable:
    """A fabric with every host in the group, and the verbs that break it."""

    fabric: Fabric
    ovs: PrivateOvs
    controller: ControllerProcess
    net: EmulatedFabric
    verbs: Failures

    def rules(self) -> dict[str, SwitchRules]:
        """What the switches say they hold."""
        names = self.fabric.switch
        return {name: parse_rules(self.ovs.dump_flows(name), self.ovs.dump_groups(name)) for name in names}

    def after(self, failure: Callable[[], None]) -> tuple[list[str], dict[str, SwitchRules]]:
        """What is wrong with the rules once ``failure`` has been got over, and the rules."""
        failure()
        deadline = time.monotonic() + BOUND_S
        problems: list[str] = ["nothing has been programmed"]
        rules: dict[str, SwitchRules] = {}
        while problems and time.monotonic() < deadline:
            self.ovs.check()
            event = self.controller.next_programmed()
            if event is None:
                continue
            down: frozenset[End] = frozenset((node, port) for node, port in event["down"])
            plan = make_plan(Live(self.fabric, down), event["groups"], event["slots"])
            rules = self.rules()
            present = {name: held for name, held in rules.items() if name not in event["absent"]}
            planned = {name: plan.rules[name] for name in present}
            problems = compare(planned, present) or prove(self.fabric, rules, {GROUP: set(self.fabric.host)}, down)
        return problems, rules


@contextmanager
def breakable(rundir: Path) -> Iterator[Breakable]:
    fabric = parse_topology(SHAPE)
    with programmed(rundir, fabric) as (ovs, controller, net, _):
        ovs.supervise()
        controller.supervise()
        yield Breakable(fabric, ovs, controller, net, Failures(fabric, ovs, controller, {}))


def break_and_mend(rundir: Path) -> dict[str, object]:
    seen: dict[str, object] = {}
    with breakable(rundir) as it:
        whole = it.rules()
        for name, failure, cure in (
            ("link", lambda: it.verbs.link_down("l0", "s0"), lambda: it.verbs.link_up("l0", "s0")),
            ("switch", lambda: it.verbs.switch_down("s0"), lambda: it.verbs.switch_up("s0")),
        ):
            problems, rules = it.after(failure)
            seen[name] = (problems, rules == whole)
            problems, rules = it.after(cure)
            seen[f"{name} back"] = (problems, rules == whole)
        for name, failure in (("controller", it.verbs.controller_kill), ("vswitchd", it.verbs.vswitchd_kill)):
            problems, rules = it.after(failure)
            seen[name] = (problems, rules == whole)
        for failure in (lambda: it.verbs.link_down("h1", "l0"), it.verbs.controller_kill):
            it.after(failure)
        problems, rules = it.after(lambda: it.verbs.link_up("h1", "l0"))
        seen["host unknown to switches"] = (problems, rules == whole)
        it.net._check(it.net._switch_interfaces(), None)
        seen["restarts"] = (it.controller.restarts, it.ovs.restarts)
    return seen


def test_links_and_switches_are_led_around_and_back_and_what_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    nothing_wrong: list[str] = []
    led_around, as_before = (nothing_wrong, False), (nothing_wrong, True)
    assert in_sandbox(tmp_path, break_and_mend) == {
        "link": led_around,
        "link back": as_before,
        "switch": led_around,
        "switch back": as_before,
        "controller": as_before,
        "vswitchd": as_before,
        "host unknown to switches": as_before,
        "restarts": (2, 1),
    }


def with_fault(folder: Path, words: str) -> str:
    file = folder / "faulty.yaml"
    file.write_text(
        "topology: fattree,k=4\nrate_bps: 20M\nsize_bytes: 128KiB\nwarmup: 0\n"
        f'faults:\n  - {{at: 200ms, fault: "{words}"}}\n'
    )
    return str(file)


@pytest.mark.parametrize("words", ["switch c0 down", "controller kill"])
def test_an_allgather_is_verified_although_its_fabric_fails_under_it(tmp_path: Path, words: str) -> None:
    result = run(tmp_path, with_fault(tmp_path, words)).verified()
    cores = {link: size for link, size in result.link_bytes.items() if link.startswith("c")}
    before = sum(size for link, size in cores.items() if link.startswith("c0->"))
    around = sum(cores.values()) - before
    if words.startswith("switch"):
        uplinks = sum(size for link, size in result.link_bytes.items() if link.startswith("h"))
        assert min(before, around) > 0.1 * uplinks, "it went down in mid-operation"
