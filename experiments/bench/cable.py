"""Two network namespaces of a measurement's own, joined by a virtual cable.

They have no names: they are there as long as a process is in one or has it open, so that nothing of them stays behind,
however the measurement ends.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from endpoints.core.communicator import Peer
from endpoints.io.host import CLONE_NEWNET, enter_namespace

INTERFACE = "cable0"
"""At either end."""
INTERFACE_MTU = 9000
NEAR = Peer(0, "near", bytes([2, 0, 0, 0, 0, 1]), 0x0A000001)
FAR = Peer(1, "far", bytes([2, 0, 0, 0, 0, 2]), 0x0A000002)


@dataclass(frozen=True, slots=True)
class Cable:
    """The namespaces of both ends, as paths that hold in this process and in those that it forks."""

    near: str
    far: str


@contextmanager
def cable() -> Iterator[Cable]:
    """A cable, as long as the context lasts. OSError if this process may not make namespaces."""
    with ExitStack() as stack:
        home = _open(stack)
        ends = []
        try:
            for _ in range(2):
                _unshare()
                ends.append(_open(stack))
                for scope in ("all", "default"):
                    Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
            near, far = ends
            _ip(f"link add {INTERFACE} mtu {INTERFACE_MTU} type veth peer name other mtu {INTERFACE_MTU}")
            _ip(f"link set other netns {near} name {INTERFACE}")
            _bring_up(FAR)
            enter_namespace(near)
            _bring_up(NEAR)
        finally:
            enter_namespace(home)
        yield Cable(near, far)


def _open(stack: ExitStack) -> str:
    """The namespace that this thread is in, kept open; its path."""
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    stack.callback(os.close, descriptor)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _unshare() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot make a network namespace: {os.strerror(error)}")


def _bring_up(end: Peer) -> None:
    _ip(f"link set {INTERFACE} address {end.mac.hex(':')} up")


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True)
