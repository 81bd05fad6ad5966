"""What a machine has, as values, and what follows from it; :mod:`topo.probe` looks, this module decides.

The better mechanism is taken where it is there: Open vSwitch's kernel datapath before its userspace one, netem for
delays where the kernel has it. What is missing is named with the package that brings it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Missing:
    """A program, Python module or kernel feature that is not there.

    ``package`` brings it, ``purpose`` is what it is for; what is ``required`` must be there before anything starts.
    """

    what: str
    package: str
    purpose: str
    required: bool = True

    def __str__(self) -> str:
        kind = "missing" if self.required else "optional, missing"
        return f"{self.what} ({self.purpose}): {kind}, comes with {self.package}"


@dataclass(frozen=True, slots=True)
class Need:
    """A program or Python module that is looked for; the fields are those of :class:`Missing`."""

    name: str
    package: str
    purpose: str
    required: bool = True


PROGRAMS = (
    Need("ovs-vswitchd", "openvswitch-switch", "the switches"),
    Need("ovsdb-server", "openvswitch-common", "the switches' database"),
    Need("ovsdb-tool", "openvswitch-common", "the switches' database"),
    Need("ovs-vsctl", "openvswitch-switch", "making bridges"),
    Need("ovs-ofctl", "openvswitch-common", "reading the rules back"),
    Need("ovs-appctl", "openvswitch-common", "reading the counters"),
    Need("mnexec", "mininet", "hosts in namespaces"),
    Need("ifconfig", "net-tools", "Mininet asks for it"),
    Need("ip", "iproute2", "links and addresses"),
    Need("tc", "iproute2", "shaping"),
    Need("ethtool", "ethtool", "checksums over the userspace datapath"),
    Need("ping", "iputils-ping", "the console's ping", required=False),
    Need("tcpdump", "tcpdump", "looking at traffic by hand", required=False),
    Need("tshark", "tshark", "checking captures against Wireshark", required=False),
    Need("unshare", "util-linux", "trying kernel features", required=False),
    Need("modprobe", "kmod", "loading the kernel datapath", required=False),
    Need("mpirun.openmpi", "openmpi-bin", "Open MPI, to compare with", required=False),
    Need("uftp", "uftp", "UFTP, to compare with", required=False),
    Need("uftpd", "uftp", "UFTP, to compare with", required=False),
)

MODULES = (
    Need("mininet", "mininet", "hosts and links; .venv must be made from the system's python3"),
    Need("networkx", ".venv (make setup)", "trees and routes"),
    Need("numpy", ".venv (make setup)", "packet rings"),
    Need("scapy", ".venv (make setup)", "packet formats"),
    Need("ryu", ".venv (make setup)", "the controller"),
    Need("mpi4py", "python3-mpi4py", "Open MPI, to compare with", required=False),
)

FEATURES: Mapping[str, str] = {
    "veth": "virtual links",
    "htb": "link rates",
    "openvswitch": "the kernel datapath",
    "netem": "link delays",
    "tbf": "token buckets",
    "clsact": "filters on what a port sends",
    "bpf": "faults on chosen packets",
    "ifb": "reordering in the kernel",
}
"""Kernel features and what each is for; without the first two no fabric can be built."""

REQUIRED_FEATURES = ("veth", "htb")


@dataclass(frozen=True)
class Facts:
    """What was found.

    ``programs`` and ``modules`` are names, ``features`` says of each kernel feature whether it worked, None where it
    could not be tried, and ``untried`` says why not. ``accounting`` is how hosts' CPU time is accounted, in a user's
    words (``topo.cgroups``). ``versions`` are texts by name.
    """

    root: bool
    programs: frozenset[str]
    modules: frozenset[str]
    features: Mapping[str, bool | None] = field(default_factory=dict)
    untried: tuple[str, ...] = ()
    accounting: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Platform:
    """What will be used. ``features``, ``untried`` and ``accounting`` are those of :class:`Facts`.

    ``datapath`` is Open vSwitch's; ``delay`` is the mechanism for link delays, None where the kernel has none.
    """

    datapath: Literal["kernel", "user"]
    delay: Literal["netem"] | None
    root: bool
    missing: tuple[Missing, ...]
    features: Mapping[str, bool | None]
    untried: tuple[str, ...]
    accounting: str
    versions: Mapping[str, str]

    @property
    def blockers(self) -> tuple[Missing, ...]:
        """What is missing without which nothing can start."""
        return tuple(m for m in self.missing if m.required)

    @property
    def datapath_type(self) -> Literal["netdev", "system"]:
        """The ``datapath_type`` of a bridge, in Open vSwitch's words."""
        return "system" if self.datapath == "kernel" else "netdev"


def choose(facts: Facts) -> Platform:
    """The platform that ``facts`` allow. A feature that could not be tried is not relied on, and not called missing."""
    wanted = [(need, facts.programs) for need in PROGRAMS] + [(need, facts.modules) for need in MODULES]
    missing = [
        Missing(need.name, need.package, need.purpose, need.required)
        for need, found in wanted
        if need.name not in found
    ]
    kernel = facts.versions.get("kernel", "")
    missing += [
        Missing(f"kernel feature {name}", _kernel_package(kernel), purpose, required=name in REQUIRED_FEATURES)
        for name, purpose in FEATURES.items()
        if facts.features.get(name) is False
    ]
    return Platform(
        datapath="kernel" if facts.features.get("openvswitch") else "user",
        delay="netem" if facts.features.get("netem") else None,
        root=facts.root,
        missing=tuple(missing),
        features={name: facts.features.get(name) for name in FEATURES},
        untried=facts.untried,
        accounting=facts.accounting,
        versions=dict(facts.versions),
    )


def _kernel_package(release: str) -> str:
    """Where a kernel's modules come from; Ubuntu keeps the rarer ones apart."""
    if release.endswith(("-generic", "-aws", "-azure", "-gcp", "-oracle", "-kvm", "-lowlatency", "-raspi")):
        return f"linux-modules-extra-{release}"
    return "a stock kernel (Debian: linux-image-amd64)"
