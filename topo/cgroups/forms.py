"""Control groups as text: what is mounted where, what their files say, and what is written to them.

Version 1 has a hierarchy of directories for each controller (kernel: admin-guide/cgroup-v1), version 2 one for all of
them (admin-guide/cgroup-v2). CPU time is the controller cpuacct's in the one, and every group's in the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

TOP = "treecast"
"""The group of all runs, at the top of a hierarchy."""
V1_CONTROLLERS = ("cpuacct", "cpuset", "cpu")
"""Of version 1, those that are used where they are; without the first there is nothing to account with."""
PERIOD_US = 100_000
"""For which a limit holds: the kernel's own default."""
LEAST_QUOTA_US = 1_000
"""The least that the kernel takes."""
LEAST_CPUS = LEAST_QUOTA_US / PERIOD_US

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_CPUS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


@dataclass(frozen=True)
class Mounts:
    """Where control groups can be written to: version 1's directory by controller, and version 2's."""

    v1: Mapping[str, Path]
    v2: Path | None


def parse_mounts(mountinfo: str) -> Mounts:
    """What ``/proc/self/mountinfo`` says (proc(5)); what is mounted read-only is left out."""
    v1: dict[str, Path] = {}
    v2 = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        where, options = before.split()[4:6]
        kind, _, super_options = after.split(maxsplit=2)
        if not {"rw"} <= set(options.split(",")) & set(super_options.split(",")):
            continue
        place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), where))
        if kind == "cgroup":
            v1 |= {name: place for name in super_options.split(",") if name in V1_CONTROLLERS}
        elif kind == "cgroup2":
            v2 = place
    return Mounts(v1, v2)


def group(*names: str) -> PurePosixPath:
    """The path of a group below :data:`TOP`; ValueError for a name that could be anything but a directory's own."""
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"control group {name!r}: a name has up to 63 letters, digits, - and _")
    return PurePosixPath(TOP, *names)


def usage_ns(cpu_stat: str) -> int:
    """CPU time from version 2's ``cpu.stat``, in ns; ValueError if it is not there."""
    for line in cpu_stat.splitlines():
        name, _, value = line.partition(" ")
        if name == "usage_usec":
            return int(value) * 1_000
    raise ValueError(f"no usage_usec in cpu.stat: {cpu_stat!r}")


def quota_us(cpus: float) -> int:
    """The CPU time in each period that makes a limit of so many CPUs, like 0.5; ValueError if it is no limit."""
    if not (math.isfinite(cpus) and cpus >= LEAST_CPUS):
        raise ValueError(f"a limit of {cpus:g} CPUs: at least {LEAST_CPUS:g} is possible")
    return round(cpus * PERIOD_US)


def parse_cpus(text: str) -> frozenset[int]:
    """The CPUs of a list like ``"0-2,5"`` (cpuset(7)); ValueError for anything else."""
    parts = [part.partition("-") for part in text.split(",")] if _CPUS.fullmatch(text) else []
    ranges = [range(int(first), int(last or first) + 1) for first, _, last in parts]
    if not ranges or not all(ranges):
        raise ValueError(f"CPUs {text!r}: write numbers and ranges, like 0-2,5")
    return frozenset(chain.from_iterable(ranges))


def cpu_list(cpus: Iterable[int]) -> str:
    """The list of these CPUs, as ``cpuset.cpus`` takes it."""
    return ",".join(map(str, sorted(cpus)))
