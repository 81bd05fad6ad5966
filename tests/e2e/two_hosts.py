"""Two hosts, a network namespace each, joined by a virtual cable: the least on which collectives run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from endpoints.core.communicator import Communicator, GroupAddress, Peer
from endpoints.core.config import ProtocolConfig
from endpoints.io.commands import HostSetup
from endpoints.wire.templates import build_templates
from tests.e2e.veth_pair import LEFT, LEFT_IP, LEFT_MAC, RIGHT, RIGHT_IP, RIGHT_MAC, command

MTU = 4096
RATE_BPS = 200_000_000
STAGING = 256
"""Frames."""
HOLD = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]


@dataclass(frozen=True, slots=True)
class TwoHosts:
    """What both are told to begin with, by rank."""

    comm: Communicator
    setups: tuple[HostSetup, HostSetup]


@contextmanager
def two_hosts(folder: Path, workers: int = 1, nic_memory: int | None = None) -> Iterator[TwoHosts]:
    """The cable's ends, in a sandbox of ``veth_pair``, are a host's each from now on."""
    groups = tuple(GroupAddress(0xEF010000 + n, bytes([1, 0, 0x5E, 1, 0, n])) for n in range(workers))
    peers = Peer(0, "left", LEFT_MAC, LEFT_IP), Peer(1, "right", RIGHT_MAC, RIGHT_IP)
    comm = Communicator(peers, groups, MTU, RATE_BPS)
    progress = folder / "progress"
    np.zeros((2, workers, 2), np.int64).tofile(progress)
    with subprocess.Popen(["unshare", "--net", *HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        command(f"ip link set {RIGHT} netns {holder.pid}")
        command(f"nsenter --target={holder.pid} --net ip link set {RIGHT} up")
        command(f"nsenter --target={holder.pid} --net ip address add 10.0.1.1/16 dev {RIGHT}")
        command(f"ip address add 10.0.0.1/16 dev {LEFT}")
        places = (("/proc/self/ns/net", LEFT), (f"/proc/{holder.pid}/ns/net", RIGHT))
        left, right = (
            HostSetup(
                *place,
                comm,
                rank,
                config=ProtocolConfig(),
                templates=dict(build_templates()),
                seed=7,
                rq_depth=STAGING,
                impairments=(),
                progress=progress,
                nic_memory=nic_memory,
            )
            for rank, place in enumerate(places)
        )
        yield TwoHosts(comm, (left, right))
        holder.kill()
