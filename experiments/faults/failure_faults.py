"""Links, switches, hosts and programs that fail; what several faults have down is down until the last has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from experiments.faults.fault import Fault
from experiments.faults.quantities import link_ends

if TYPE_CHECKING:
    from experiments.failures import Failures, Part

Thing = tuple[str, ...]
"""What fails and how, such as ``("switch", "down", "a10")``."""


class FailureFaults:
    """See the module."""

    name = "failure"

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._things: dict[int, Thing] = {}

    def takes(self, fault: Fault) -> bool:
        """What is down, stopped, slow or killed."""
        return fault.kind in {"down", "stop", "slow", "kill"}

    def apply(self, number: int, fault: Fault) -> None:
        """Take it down."""
        thing = _thing(fault)
        match thing:
            case ("link", "down", one, other):
                self._failures.link_down(one, other)
            case ("switch", "down", switch):
                self._failures.switch_down(switch)
            case ("host", "stop", host):
                self._failures.host_stop(host)
            case ("host", "slow", host):
                self._failures.host_slow(host, float(str(fault.get("probability"))))
            case ("host", "kill", host):
                self._failures.host_kill(host, _part(fault))
            case ("controller", "kill"):
                self._failures.controller_kill()
            case ("vswitchd", "kill"):
                self._failures.vswitchd_kill()
        if fault.form.lasting:
            self._things[number] = thing

    def observe(self, number: int) -> Mapping[str, int]:
        """Nothing is counted."""
        del number
        return {}

    def clear(self, number: int) -> Mapping[str, int]:
        """Put it back, unless another fault has it down, too."""
        thing = self._things.pop(number)
        if thing in self._things.values():
            return {}
        match thing:
            case ("link", "down", one, other):
                self._failures.link_up(one, other)
            case ("switch", "down", switch):
                self._failures.switch_up(switch)
            case ("host", "stop", host):
                self._failures.host_cont(host)
            case ("host", "slow", host):
                self._failures.host_fast(host)
        return {}


def _part(fault: Fault) -> Part:
    part = fault.get("part")
    return "endpoint" if part is None else cast("Part", part)


def _thing(fault: Fault) -> Thing:
    """The same for both ways to write a link."""
    places = sorted(link_ends(fault.place)[:2]) if fault.target == "link" else [fault.place] if fault.place else []
    return (fault.target, fault.kind, *places)
