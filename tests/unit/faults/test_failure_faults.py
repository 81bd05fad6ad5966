from __future__ import annotations

from typing import Any

from experiments.faults.failure_faults import FailureFaults
from experiments.faults.fault import parse_fault
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")


class Verbs:
    """Stands for the library of failures: any verb, noted with its arguments."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def __getattr__(self, verb: str) -> Any:
        return lambda *names: self.said.append((verb, *names))


def test_each_failure_has_its_verb_and_its_way_back() -> None:
    verbs = Verbs()
    faults = FailureFaults(verbs)  # type: ignore[arg-type]  # it has all verbs
    words = ["link e00-a00 down", "switch a10 down", "host h3 stop", "host h4 slow 60%"]
    words += ["host h7 kill", "host h8 kill nic", "controller kill", "vswitchd kill"]
    for number, text in enumerate(words):
        faults.apply(number, parse_fault(text, FABRIC))
    for number in range(4):
        faults.clear(number)
    assert verbs.said == [
        ("link_down", "a00", "e00"),
        ("switch_down", "a10"),
        ("host_stop", "h3"),
        ("host_slow", "h4", 0.6),
        ("host_kill", "h7", "endpoint"),
        ("host_kill", "h8", "nic"),
        ("controller_kill",),
        ("vswitchd_kill",),
        ("link_up", "a00", "e00"),
        ("switch_up", "a10"),
        ("host_cont", "h3"),
        ("host_fast", "h4"),
    ]


def test_what_two_faults_have_down_comes_back_with_the_last() -> None:
    verbs = Verbs()
    faults = FailureFaults(verbs)  # type: ignore[arg-type]  # it has all verbs
    faults.apply(1, parse_fault("link e00-a00 down", FABRIC))
    faults.apply(2, parse_fault("link a00-e00 down for 3s", FABRIC))
    faults.clear(1)
    assert ("link_up", "a00", "e00") not in verbs.said
    faults.clear(2)
    assert verbs.said[-1] == ("link_up", "a00", "e00")
