"""Looks at the machine: programs on PATH, Python modules, and kernel features, each tried for real.

The features are tried on a veth in a network namespace that ends with the trial, so nothing of the machine's own
network is touched; the only lasting effect is that the kernel may load modules, as it does for any user of them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from topo.cgroups.find import find
from topo.platform import FEATURES, MODULES, PROGRAMS, Facts, Platform, choose

TRIAL_TIMEOUT_S = 20

TRIALS = {
    "veth": "ip link add try0 type veth peer name try1",
    "htb": "tc qdisc add dev try0 root handle 1: htb default 1",
    "netem": "tc qdisc replace dev try0 root handle 2: netem delay 1ms",
    "tbf": "tc qdisc replace dev try0 root handle 3: tbf rate 1mbit burst 2kb latency 1ms",
    "clsact": "tc qdisc add dev try0 clsact",
    "bpf": "tc filter add dev try0 egress bpf bytecode '1,6 0 0 4294967295'",
    "ifb": "ip link add tryifb type ifb",
    "openvswitch": "modprobe -q openvswitch; ovs-dpctl add-dp try",
}
"""Feature to shell command, in the order in which they build on each other."""

VERSION_COMMANDS = {
    "ovs": ("ovs-vswitchd", "--version"),
    "tc": ("tc", "-V"),
}


def probe() -> Platform:
    """What this machine can do, and what is missing. Raises nothing: what cannot be tried is said to be untried."""
    return choose(look())


def look() -> Facts:
    """The facts; takes some tens of milliseconds."""
    root = os.geteuid() == 0
    programs = frozenset(need.name for need in PROGRAMS if shutil.which(need.name))
    features, untried = _try_features(root=root, programs=programs)
    return Facts(
        root=root,
        programs=programs,
        modules=frozenset(need.name for need in MODULES if importlib.util.find_spec(need.name)),
        features=features,
        untried=untried,
        accounting=find().mechanism,
        versions=dict(_versions(programs)),
    )


def _try_features(*, root: bool, programs: frozenset[str]) -> tuple[dict[str, bool | None], tuple[str, ...]]:
    """Whether each feature works, and why some could not be tried."""
    unknown: dict[str, bool | None] = dict.fromkeys(FEATURES)
    if not root:
        return unknown, ("kernel features were not tried: that needs root",)
    lacking = [name for name in ("unshare", "ip", "tc") if name not in programs]
    if lacking:
        return unknown, (f"kernel features were not tried: that needs {', '.join(lacking)}",)
    script = "\n".join(f"if {{ {command}; }} >/dev/null 2>&1; then echo {name}; fi" for name, command in TRIALS.items())
    try:
        trial = subprocess.run(
            ["unshare", "--net", "sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=TRIAL_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return unknown, (f"kernel features were not tried: {problem}",)
    if "unshare" in trial.stderr:
        return unknown, (f"kernel features were not tried: {trial.stderr.strip()}",)
    worked = trial.stdout.split()
    features: dict[str, bool | None] = {name: name in worked for name in FEATURES}
    if not features["openvswitch"] and "ovs-vsctl" not in programs:  # the package of ovs-dpctl
        return {**features, "openvswitch": None}, ("the kernel datapath was not tried: that needs openvswitch-switch",)
    return features, ()


def _versions(programs: frozenset[str]) -> Iterator[tuple[str, str]]:
    yield "kernel", os.uname().release
    for name, command in VERSION_COMMANDS.items():
        if command[0] in programs:
            yield name, _version(*command)
    yield from _mininet_version()
    for name in ("ryu", "scapy", "numpy", "networkx"):
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue


def _mininet_version() -> Iterator[tuple[str, str]]:
    """Mininet's own constant, read from its source: Debian's package has no metadata, and importing it is slow."""
    spec = importlib.util.find_spec("mininet")
    for folder in spec.submodule_search_locations or () if spec else ():
        source = Path(folder, "net.py")
        if source.exists() and (found := re.search(r'^VERSION = "([^"]+)"', source.read_text(), re.MULTILINE)):
            yield "mininet", found[1]


def _version(*command: str) -> str:
    """The first number with a dot that the program prints; "unknown" if there is none."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TRIAL_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return found[0] if found else "unknown"
