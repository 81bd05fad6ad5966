"""What a run could leave on the machine, to be compared before and after.

A run's own namespaces end with its processes (``experiments.sandbox``), so what would keep one alive is looked for: a
process, a mount, a name. Processes are found since this one adopts whatever its descendants leave as orphans.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

from experiments.ledger import ROOT, SYSCTLS, Ledger
from topo.cgroups.find import find

PR_SET_CHILD_SUBREAPER = 36
NAMED_NAMESPACES = Path("/run/netns")
SWITCHES = Path("/run/openvswitch")
INTERFACES = Path("/sys/class/net")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - looked at only


def adopt_orphans() -> None:
    """From now on a descendant whose parent has ended is a child of this process (prctl(2), Linux 3.4)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl: cannot become the reaper of orphans")


def traces() -> frozenset[str]:
    """Everything of a kind that runs make and should have taken away, a line each."""
    return frozenset(
        {
            *(f"process {pid}" for pid in _children()),
            *(f"interface {name}" for name in _names(INTERFACES)),
            *(f"queue {line}" for line in _queues()),
            *(f"namespace {name}" for name in _names(NAMED_NAMESPACES)),
            *(f"mount {line}" for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()),
            *(f"Open vSwitch's {name}" for name in _names(SWITCHES)),
            *(f"shared memory {name}" for name in _names(SHARED_MEMORY)),
            *(f"control groups of run {run}" for run in find().runs() - _live()),
            *_pages(),
        }
    )


def _children() -> list[str]:
    tasks = Path("/proc/self/task").iterdir()
    return [pid for task in tasks for pid in (task / "children").read_text(encoding="utf-8").split()]


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - names are wanted


def _queues() -> list[str]:
    """Queues on the host's own interfaces, without their counters."""
    done = subprocess.run(["tc", "qdisc", "show"], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def _live() -> frozenset[str]:
    """The runs that are on."""
    return frozenset(Ledger(ROOT).live()) if ROOT.exists() else frozenset()


def _pages() -> list[str]:
    """The ledger's pages but for those of runs that are on."""
    if not ROOT.exists():
        return []
    live = _live()
    return [str(path) for path in ROOT.iterdir() if path.stem not in live and not (live and path.name == SYSCTLS)]
