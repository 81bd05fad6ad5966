"""A fabric built with Mininet: the only importer of Mininet. Meant to run inside the sandbox's namespaces.

Hosts, switches and links are Mininet's own objects, so that its command line works on them. What Mininet does with a
shell command for each step and link (shaping, MTU, ARP) is done here with one process for each namespace.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Self

from mininet.link import Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, OVSSwitch, RemoteController

from topo import tc
from topo.counters import Counters, parse_proc_net_dev
from topo.fabric import Fabric, interface
from topo.ovs import PrivateOvs
from topo.shaping import LinkSpec, differences, tc_lines

OPEN_FILES = 4096
"""Descriptors for us and Mininet's children: mnexec closes them one by one up to the limit, which may be 10^9."""

Progress = Callable[[int, int], None]


class BuildError(RuntimeError):
    """The fabric did not become what was asked for."""


class _Controller(RemoteController):
    """Mininet would look for it with telnet."""

    def checkListening(self) -> None:  # noqa: N802 - Mininet's name
        """It listens: whoever made it has waited for that."""


class EmulatedFabric:
    """A context manager: entering builds ``fabric``, leaving takes it down.

    Every link is as ``spec`` says; the switches are at the controller on 127.0.0.1:``controller_port``. ``progress`` is
    told (steps done, steps).
    """

    def __init__(
        self, fabric: Fabric, spec: LinkSpec, ovs: PrivateOvs, controller_port: int, progress: Progress | None = None
    ) -> None:
        self.fabric = fabric
        self._spec = spec
        self._ovs = ovs
        self._port = controller_port
        self._progress = progress or (lambda _done, _total: None)
        self._done = 0
        self._total = 2 * len(fabric.hosts) + len(fabric.switches) + len(fabric.links) + 1
        self.net: Mininet | None = None

    def __enter__(self) -> Self:
        setLogLevel("critical")
        os.environ.update(self._ovs.env)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limit = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        Mininet.inited = True  # else it would change eleven sysctls of the host for good
        self.net = Mininet(topo=None, build=False, switch=OVSSwitch, host=Host, link=Link, controller=None)
        try:
            self._build(self.net)
            self._configure()
        except BaseException as problem:
            self.stop()
            if isinstance(problem, Exception | SystemExit):
                self._ovs.check()  # switches that are dead are the reason, whatever failed for the want of them
            if type(problem) in (Exception, SystemExit):  # Mininet raises no other
                raise BuildError(f"Mininet: {problem}") from problem
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take it down; harmless if it is down."""
        if self.net is not None:
            net, self.net = self.net, None
            stranded: list[OVSSwitch] = []
            if not self._ovs.switching:  # nobody is there to delete a bridge; the sandbox's end takes it along
                stranded, net.switches = net.switches, []
            net.stop()
            for switch in stranded:
                switch.terminate()

    def _build(self, net: Mininet) -> None:
        net.addController("c", controller=_Controller, ip="127.0.0.1", port=self._port)
        for host in self.fabric.hosts:
            net.addHost(host.name, ip=f"{host.ip}/8", mac=host.mac)
            self._step()
        for switch in self.fabric.switches:
            net.addSwitch(
                switch.name,
                dpid=f"{switch.dpid:016x}",
                datapath="user" if self._ovs.datapath == "netdev" else "kernel",
                protocols="OpenFlow13",
                failMode="secure",
                batch=True,
            )
            self._step()
        for link in self.fabric.links:
            net.addLink(link.a, link.b, port1=link.a_port, port2=link.b_port)
            self._step()
        tc.batch("ip", (f"link set dev {name} mtu {self._spec.mtu}" for name in self._switch_interfaces()))
        net.build()
        net.start()
        self._ovs.check()  # Mininet does not look at how ovs-vsctl ended
        self._ovs.leave_queues(self._switch_interfaces())
        self._step()

    def _switch_interfaces(self) -> list[str]:
        names = self.fabric.switch
        return [interface(node, port) for node, port, _ in self.fabric.directed_links if node in names]

    def _configure(self) -> None:
        names = self._switch_interfaces()
        tc.batch("tc", (line for name in names for line in tc_lines(name, self._spec)))
        self._check(names, None)
        for host in self.fabric.hosts:
            self._configure_host(host.name)
            self._step()

    def _configure_host(self, name: str) -> None:
        pid, port = self.host_pid(name), interface(name, 0)
        # A kernel without IPv6 does not know the keys (-e).
        tc.run(pid, "sysctl", "-eqw", *(f"net.ipv6.conf.{scope}.disable_ipv6=1" for scope in ("all", "default", port)))
        neighbours = (
            f"neigh replace {peer.ip} lladdr {peer.mac} dev {port} nud permanent"
            for peer in self.fabric.hosts
            if peer.name != name
        )
        # Mininet's hosts reach groups by their only interface, too.
        routes = (f"link set dev {port} mtu {self._spec.mtu}", f"route replace 224.0.0.0/4 dev {port}")
        tc.batch("ip", (*routes, *neighbours), pid)
        if self._ovs.datapath == "netdev":  # it forwards checksums that veth has left to hardware
            tc.run(pid, "ethtool", "-K", port, "tx", "off")
        tc.batch("tc", tc_lines(port, self._spec), pid)
        self._check([port], pid)

    def _check(self, names: list[str], pid: int | None) -> None:
        """Compare what the kernel has with what was asked for."""
        found = tc.qdiscs(pid)
        for name in names:
            problems = differences(name, self._spec, found.get(name, []), tc.classes(name, pid))
            if problems:
                raise BuildError(problems[0])

    def _step(self) -> None:
        self._done += 1
        self._progress(min(self._done, self._total), self._total)

    def host_pid(self, name: str) -> int:
        """Process id of a host's shell, whose network namespace is the host's."""
        assert self.net is not None
        return int(self.net[name].pid)

    def namespace_of(self, node: str) -> int | None:
        """The process in whose network namespace a node's interfaces are; None: in this one, as those of switches."""
        return self.host_pid(node) if node in self.fabric.host else None

    def interface_counters(self) -> dict[str, Counters]:
        """The kernel's counters of every interface of the fabric, by its name."""
        wanted = set(self._switch_interfaces())
        here = parse_proc_net_dev(Path("/proc/self/net/dev").read_text(encoding="ascii"))
        table = {name: counters for name, counters in here.items() if name in wanted}
        for host in self.fabric.hosts:
            inside = parse_proc_net_dev(Path(f"/proc/{self.host_pid(host.name)}/net/dev").read_text(encoding="ascii"))
            table[interface(host.name, 0)] = inside[interface(host.name, 0)]
        return table
