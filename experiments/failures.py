"""Failures of a running fabric on demand: links, switches, hosts' processes, the controller, Open vSwitch's daemon.

Every verb names one thing by its name in the fabric; a name that is not in it is one line of ``UserError``, and nothing
is done. Verbs return when the failure is in force, not when the fabric has got over it. Taking down what is down, and
putting back what is up, does nothing.

What is taken down is the real thing where there is one:

=========  ============================================================================================================
link       its interfaces at switches are set down; OpenFlow's port status tells the controller, carrier a host
switch     all bridges share one ovs-vswitchd, so none can be killed alone: its links go down, its connection to the
           controller is cut, and its flows and groups are deleted, which is what a loss of power leaves
host       the processes of its endpoint are killed, stopped (SIGSTOP), continued, or slow (stopped for a share of the
           time), where it has a NIC that may be killed alone, or a part of it; its kernel goes on
=========  ============================================================================================================
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from controller.live import End, link_ends, switch_ends
from experiments.brake import Brake
from experiments.controller_process import ControllerProcess
from experiments.errors import UserError
from topo import tc
from topo.fabric import Fabric, FabricError, interface
from topo.ovs import PrivateOvs

Pair = tuple[str, str]
Part = Literal["endpoint", "application", "nic", "worker"]
"""What of a host's endpoint is killed: all of it or, where it has a NIC, one of two sides, or a single worker."""


def ends_down(fabric: Fabric, links: Iterable[Pair], switches: Iterable[str]) -> frozenset[End]:
    """The link ends at switches that are down when these links (pairs of neighbours) and switches are."""
    failed = [*(link_ends(fabric, *pair) for pair in links), *(switch_ends(fabric, switch) for switch in switches)]
    return frozenset(end for ends in failed for end in ends if end[0] in fabric.switch)


class Failures:
    """See the module. ``endpoints``: the processes of each host's endpoint, by its name; the first is waited for."""

    def __init__(
        self, fabric: Fabric, ovs: PrivateOvs, controller: ControllerProcess, endpoints: Mapping[str, Sequence[int]]
    ) -> None:
        self._fabric = fabric
        self._ovs = ovs
        self._controller = controller
        self._endpoints = endpoints
        self._links: set[Pair] = set()
        self._switches: set[str] = set()
        self._stopped: set[str] = set()
        self._brakes: dict[str, Brake] = {}

    @property
    def down(self) -> tuple[str, ...]:
        """What is down or stopped now, for people: ``("link e00-a00", "switch c0", "host h3")``."""
        links = sorted(f"link {one}-{other}" for one, other in self._links)
        return (*links, *(f"switch {name}" for name in sorted(self._switches)), *(f"host {h}" for h in self._hosts()))

    def link_down(self, one: str, other: str) -> None:
        """Take the link between two neighbours down, in both directions."""
        self._change({*self._links, self._link(one, other)}, self._switches)

    def link_up(self, one: str, other: str) -> None:
        """Put the link back; it stays down while a switch at one of its ends is."""
        self._change(self._links - {self._link(one, other)}, self._switches)

    def switch_down(self, switch: str) -> None:
        """Take a switch down: its links, its connection to the controller, its rules."""
        self._require_switch(switch)
        if switch in self._switches:
            return
        self._change(self._links, {*self._switches, switch})
        self._ovs.disconnect(switch)
        self._ovs.forget_rules(switch)

    def switch_up(self, switch: str) -> None:
        """Put the switch back, without rules: the controller has to give it new ones."""
        self._require_switch(switch)
        if switch not in self._switches:
            return
        self._change(self._links, self._switches - {switch})
        self._ovs.connect(switch, self._controller.port)

    def controller_kill(self) -> None:
        """Kill the controller's process. Switches go on with the rules that they have; the run starts another."""
        self._kill(self._controller.pid, "the controller", signal.SIGKILL)

    def vswitchd_kill(self) -> None:
        """Kill ovs-vswitchd, and so every switch; the run starts another, which knows no rules."""
        self._kill(self._ovs.pids.get("ovs-vswitchd"), "ovs-vswitchd", signal.SIGKILL)

    def host_kill(self, host: str, part: Part = "endpoint") -> None:
        """Kill the endpoint of ``host``, or a part of it, and wait for its end; its parent is left to collect it."""
        first, *others = self._part(host, part)
        self._kill(first, f"the {part} of {host}", signal.SIGKILL)
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in (first, *others):
            with suppress(ChildProcessError):  # collected already
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._stopped.discard(host)

    def host_stop(self, host: str) -> None:
        """Stop the endpoint of ``host``: it is there and says nothing."""
        for pid in self._endpoint(host):
            self._kill(pid, f"the endpoint of {host}", signal.SIGSTOP)
        self._stopped.add(host)

    def host_cont(self, host: str) -> None:
        """Let the endpoint of ``host`` go on; nothing where it has ended meanwhile."""
        for pid in self._endpoint(host):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._stopped.discard(host)

    def host_slow(self, host: str, share: float) -> None:
        """Have the endpoint of ``host`` stopped for this share of the time."""
        pids = self._endpoint(host)
        self._kill(pids[0], f"the endpoint of {host}", 0)  # is it there?
        self.host_fast(host)
        self._brakes[host] = Brake(pids, share, lambda: host in self._stopped)

    def host_fast(self, host: str) -> None:
        """Let the endpoint of ``host`` have all of its time again."""
        brake = self._brakes.pop(host, None)
        if brake is not None:
            brake.release()

    def restore(self) -> None:
        """Put back every link and switch that is down, and let every host that is stopped go on."""
        for host in list(self._brakes):
            self.host_fast(host)
        for host in self._hosts():
            self.host_cont(host)
        for switch in sorted(self._switches):
            self.switch_up(switch)
        self._change(set(), set())

    def _change(self, links: set[Pair], switches: set[str]) -> None:
        """Make exactly these links and switches the ones that are down."""
        before = ends_down(self._fabric, self._links, self._switches)
        after = ends_down(self._fabric, links, switches)
        lines = [f"link set dev {interface(*end)} down" for end in sorted(after - before)]
        lines += [f"link set dev {interface(*end)} up" for end in sorted(before - after)]
        tc.batch("ip", lines)
        self._links, self._switches = set(links), set(switches)

    def _link(self, one: str, other: str) -> Pair:
        """The link as the fabric names it, lower end first."""
        try:
            link = self._fabric.link_between(one, other)
        except FabricError as problem:
            raise UserError(str(problem)) from None
        return link.a, link.b

    def _require_switch(self, name: str) -> None:
        if name not in self._fabric.switch:
            raise UserError(f"no switch {name} in {self._fabric.topology}: there are {_few(self._fabric.switch)}")

    def _endpoint(self, host: str) -> Sequence[int]:
        if host not in self._endpoints:
            raise UserError(f"no host {host} in {self._fabric.topology}: there are {_few(self._endpoints)}")
        return self._endpoints[host]

    def _part(self, host: str, part: Part) -> Sequence[int]:
        """Some of a host's processes; where it has a NIC the first is the application, and the others are workers."""
        pids = self._endpoint(host)
        if part == "endpoint":
            return pids
        if len(pids) == 1:
            raise UserError(f"no {part} of {host}: it has no NIC, only an endpoint")
        return {"application": pids[:1], "nic": pids[1:], "worker": pids[-1:]}[part]

    def _hosts(self) -> list[str]:
        return sorted(self._stopped, key=lambda name: self._fabric.host[name].index)

    @staticmethod
    def _kill(pid: int | None, what: str, number: int) -> None:
        if pid is None:
            raise UserError(f"{what} does not run")
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            raise UserError(f"{what} does not run any more") from None


def _few(names: Iterable[str], most: int = 3) -> str:
    known = list(names)
    return ", ".join(known) if len(known) <= most + 1 else f"{', '.join(known[:most])}, ... {known[-1]}"
