"""What is watched of links on real interfaces: frames that wait in a queue, and a link that was down."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from experiments.fidelity.sampler import Sampler
from experiments.fidelity.samples import Watched
from tests.e2e.sandboxed import in_sandbox, needs
from topo import tc
from topo.namespaces import network_of
from topo.shaping import LinkSpec, tc_lines

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs("ip", "tc", "ss", "mnexec", "unshare")]

SPEC = LinkSpec(rate_bps=1_000_000, queue_packets=50)
SENT = 45


def watched(_: Path) -> tuple[Watched, Watched]:
    """An operation that fills a queue, and one in which the link is down for a moment."""
    tc.batch("ip", ["link add left type veth peer name right", "link set left up", "link set right up"])
    tc.batch("tc", [line for name in ("left", "right") for line in tc_lines(name, SPEC)])
    sampler = Sampler(os.getpid, {})
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind(("left", 0))
        sampler.begin()
        for _frame in range(SENT):
            sender.send(bytes(12) + b"\x88\xb5" + bytes(1500))
        sampler.look()
        filled = sampler.end()
    sampler.begin()
    tc.batch("ip", ["link set right down", "link set right up"])
    return filled, sampler.end()


def watched_uplink(_: Path) -> Watched:
    """An operation in which a host, in a network namespace of its own, fills the queue of its uplink."""
    tc.batch("ip", ["link add uplink type veth peer name port", "link set port up"])
    with subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=PIPE, stdout=PIPE) as host:
        assert host.stdout is not None
        assert host.stdin is not None
        host.stdout.readline()  # it has its namespace
        tc.batch("ip", [f"link set uplink netns {host.pid}"])
        tc.batch("ip", ["link set uplink up"], host.pid)
        tc.batch("tc", tc_lines("uplink", SPEC), host.pid)
        sampler = Sampler(os.getpid, {}, namespaces=[host.pid])
        with network_of(host.pid), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
            sender.bind(("uplink", 0))
            for _frame in range(SENT):
                sender.send(bytes(12) + b"\x88\xb5" + bytes(1500))
        sampler.begin()
        sampler.look()
        seen = sampler.end()
        host.stdin.close()
    return seen


def test_the_queue_of_a_hosts_uplink_is_seen_in_its_namespace_and_is_none_of_the_switches(tmp_path: Path) -> None:
    seen = in_sandbox(tmp_path, watched_uplink)
    assert seen.queue_fill.keys() == {"uplink"}
    assert 0.5 <= seen.queue_fill["uplink"] <= 0.9
    assert seen.queued_bytes == 0


def test_a_queue_that_fills_and_a_link_that_falls_are_seen(tmp_path: Path) -> None:
    filled, fallen = in_sandbox(tmp_path, watched)
    # Some frames pass at once, as many as a link's burst is long, and twice that with hysteresis.
    assert filled.queue_fill.keys() == {"left"}
    assert 0.6 <= filled.queue_fill["left"] <= 0.9
    assert filled.queued_bytes == round(filled.queue_fill["left"] * 50) * 1514
    assert filled.send_buffer > 0
    assert {"left", "right"}.isdisjoint(filled.down)
    assert {"left", "right"} <= fallen.down
