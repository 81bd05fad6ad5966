from __future__ import annotations

import subprocess
from typing import Any

import pytest

from controller.live import link_ends, switch_ends
from experiments import failures
from experiments.errors import UserError
from experiments.failures import Failures, Part, ends_down
from topo.fabric import Fabric
from topo.registry import parse_topology


class Switches:
    """What a private Open vSwitch was asked to do."""

    pids: dict[str, int] = {}  # noqa: RUF012 - nothing runs

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def connect(self, bridge: str, port: int) -> None:
        self.asked.append(("connect", bridge, str(port)))

    def disconnect(self, bridge: str) -> None:
        self.asked.append(("disconnect", bridge))

    def forget_rules(self, bridge: str) -> None:
        self.asked.append(("forget", bridge))


class Controller:
    port = 6653
    pid = None


@pytest.fixture
def fabric() -> Fabric:
    return parse_topology("fattree,k=4")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that ``ip`` was fed."""
    fed: list[str] = []
    monkeypatch.setattr(failures.tc, "batch", lambda _program, lines: fed.extend(lines))
    return fed


@pytest.fixture
def switches() -> Switches:
    return Switches()


@pytest.fixture
def verbs(fabric: Fabric, switches: Switches) -> Failures:
    anything: Any = switches
    controller: Any = Controller()
    return Failures(fabric, anything, controller, {host.name: [2**22 + 1] for host in fabric.hosts})


def test_a_link_goes_down_and_comes_back_at_both_its_switches(verbs: Failures, lines: list[str]) -> None:
    verbs.link_down("a00", "e00")
    assert lines == ["link set dev a00-eth1 down", "link set dev e00-eth3 down"]
    assert verbs.down == ("link e00-a00",)
    verbs.link_down("e00", "a00")
    assert len(lines) == 2, "it is down already"
    verbs.link_up("e00", "a00")
    assert lines[2:] == ["link set dev a00-eth1 up", "link set dev e00-eth3 up"]
    assert verbs.down == ()


def test_of_a_hosts_link_only_the_switchs_end_goes_down(verbs: Failures, lines: list[str]) -> None:
    verbs.link_down("h1", "e00")
    assert lines == ["link set dev e00-eth1 down"], "a host would lose its routes and neighbours with its own end"


def test_a_switch_loses_links_connection_and_rules_and_comes_back_empty(
    verbs: Failures, lines: list[str], switches: Switches
) -> None:
    verbs.switch_down("c0")
    assert lines == [f"link set dev c0-eth{port} down" for port in (1, 2, 3, 4)]
    assert switches.asked == [("disconnect", "c0"), ("forget", "c0")]
    verbs.switch_down("c0")
    assert len(lines) == 4
    verbs.switch_up("c0")
    assert switches.asked[2:] == [("connect", "c0", "6653")]
    assert lines[4:] == [f"link set dev c0-eth{port} up" for port in (1, 2, 3, 4)]


def test_what_two_failures_hold_down_comes_up_with_the_last(verbs: Failures, lines: list[str]) -> None:
    verbs.link_down("a00", "c0")
    verbs.switch_down("c0")
    lines.clear()
    verbs.switch_up("c0")
    assert "link set dev c0-eth1 up" not in lines
    assert "link set dev c0-eth2 up" in lines
    verbs.link_up("c0", "a00")
    assert lines[-2:] == ["link set dev a00-eth3 up", "link set dev c0-eth1 up"]


def test_restore_puts_everything_back(verbs: Failures, lines: list[str]) -> None:
    verbs.link_down("e00", "a00")
    verbs.switch_down("c0")
    verbs.switch_down("e31")
    gone = {line.split()[3] for line in lines}
    lines.clear()
    verbs.restore()
    assert {line.split()[3] for line in lines} == gone
    assert verbs.down == ()


def test_ends_are_those_at_switches(fabric: Fabric) -> None:
    assert ends_down(fabric, [("h1", "e00")], []) == {("e00", 1)}
    assert ends_down(fabric, [("e00", "a00")], ["c0"]) == link_ends(fabric, "e00", "a00") | switch_ends(fabric, "c0")


@pytest.mark.parametrize(
    ("part", "killed"),
    [("endpoint", [1, 1, 1]), ("application", [1, 0, 0]), ("nic", [0, 1, 1]), ("worker", [0, 0, 1])],
)
def test_a_part_of_a_host_with_a_nic_is_killed(fabric: Fabric, part: Part, killed: list[int]) -> None:
    processes = [subprocess.Popen(["sleep", "1000"]) for _ in range(3)]
    anything: Any = None
    failures = Failures(fabric, anything, anything, {"h1": [process.pid for process in processes]})
    failures.host_kill("h1", part)
    ended = [process.poll() is not None for process in processes]
    for process in processes:
        process.kill()
        process.wait()
    assert ended == killed


def test_unknown_names_are_one_line_and_nothing_is_done(verbs: Failures, lines: list[str], switches: Switches) -> None:
    for verb, names, said in (
        (verbs.link_down, ("e00", "e01"), "no link between e00 and e01 in fattree"),
        (verbs.link_up, ("h99", "e00"), "no link between h99 and e00 in fattree"),
        (verbs.switch_down, ("h1",), "no switch h1 in fattree: there are e00, e01, e10, ... c3"),
        (verbs.switch_up, ("x",), "no switch x in fattree"),
        (verbs.host_kill, ("c0",), "no host c0 in fattree: there are h1, h2, h3, ... h16"),
        (verbs.host_kill, ("h1", "nic"), "no nic of h1: it has no NIC, only an endpoint"),
        (verbs.host_stop, ("h1",), "the endpoint of h1 does not run any more"),
        (verbs.controller_kill, (), "the controller does not run"),
        (verbs.vswitchd_kill, (), "ovs-vswitchd does not run"),
    ):
        with pytest.raises(UserError) as caught:
            verb(*names)
        assert str(caught.value).startswith(said)
    assert (lines, switches.asked) == ([], [])
