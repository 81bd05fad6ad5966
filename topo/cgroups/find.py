"""What this machine accounts CPU time with."""

from __future__ import annotations

import os
from pathlib import Path

from topo.cgroups.forms import parse_mounts
from topo.cgroups.groups import Groups
from topo.cgroups.process_times import ProcessTimes
from topo.cgroups.v1 import V1
from topo.cgroups.v2 import V2


def find(mountinfo: Path = Path("/proc/self/mountinfo")) -> Groups:
    """Control groups where they may be made, version 1's where it has the controller, or else process times."""
    if os.geteuid() != 0:
        return ProcessTimes("control groups need root")
    mounts = parse_mounts(mountinfo.read_text(encoding="utf-8"))
    if "cpuacct" in mounts.v1:
        return V1(mounts.v1)
    if mounts.v2 is not None:
        return V2(mounts.v2)
    return ProcessTimes("no control groups are mounted that could be written to")
