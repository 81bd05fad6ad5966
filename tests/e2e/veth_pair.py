"""A network namespace of one test's own, with two interfaces joined by a virtual cable."""

from __future__ import annotations

import ctypes
import os
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

CLONE_NEWNET = 0x40000000
LEFT, RIGHT = "left0", "right0"
LEFT_MAC, RIGHT_MAC = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 1, 1])
LEFT_IP, RIGHT_IP = 0x0A000001, 0x0A000101
"""10.0.0.1 and 10.0.1.1; only the right one is given to the kernel, so that the left side is nobody's."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace: needs root")


def command(text: str) -> str:
    """Run a command that must succeed; its output."""
    return subprocess.run(text.split(), check=True, capture_output=True, text=True).stdout


def in_sandbox(body: Callable[[], None]) -> None:
    """Run ``body`` in a child process with a network of its own, which vanishes with it; its failure fails the test."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        report = b""
        try:
            _build()
            body()
        except BaseException:  # noqa: BLE001 - whatever it is, the test is told
            report = traceback.format_exc().encode()
        os.write(writer, report[-60000:])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(child, 0)
    if report or status:
        pytest.fail(report.decode() or f"the sandbox died with status {status}", pytrace=False)


def _build() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    command(f"ip link add {LEFT} mtu 9000 type veth peer name {RIGHT} mtu 9000")
    for name, mac in ((LEFT, LEFT_MAC), (RIGHT, RIGHT_MAC)):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        command(f"ip link set {name} address {mac.hex(':')} up")
    command(f"ip address add 10.0.1.1/16 dev {RIGHT}")
    command(f"ip neighbour add 10.0.0.1 lladdr {LEFT_MAC.hex(':')} dev {RIGHT}")
