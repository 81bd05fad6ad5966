"""What only a stock kernel has: Open vSwitch's kernel datapath, and netem. Elsewhere ``make test-stock`` boots one."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, Finished, run, treecast, until
from tests.e2e.sandboxed import needs
from tests.e2e.test_captures import UD_SEND_ONLY_IMM, Row, read
from tests.e2e.veth_pair import LEFT, LEFT_MAC, RIGHT, RIGHT_MAC, command, in_sandbox
from topo import tc
from topo.probe import probe
from topo.shaping import LinkSpec, differences, tc_lines

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.stock, needs(*NEEDS, "tshark")]


@pytest.fixture(scope="module", autouse=True)
def stock_kernel() -> None:
    """Skip, saying why, on a kernel that lacks them; on one that was started for these tests that is a failure."""
    platform = probe()
    if (platform.datapath, platform.delay) != ("kernel", "netem"):
        give_up = pytest.fail if "STOCK_KERNEL" in os.environ else pytest.skip
        give_up("this kernel has not both openvswitch and netem; make test-stock starts one that has")


def test_the_doctor_finds_a_kernel_that_lacks_nothing_and_uses_it(tmp_path: Path) -> None:
    said = treecast(tmp_path, "doctor")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert {"used: Open vSwitch's kernel datapath", "used: netem for delays", "ready"} <= set(lines)
    assert not [line for line in lines if line.startswith("kernel feature") and not line.endswith(": works")]


# -- the main job, on links with a delay --------------------------------------------------------------------------

DELAY_MS, HOPS = 20, 3
"""From host to host over leaf, spine, leaf: so many links behind the one that a host's capture is at the end of."""


@pytest.fixture(scope="module")
def operation(stock_kernel: None, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run(
        tmp_path_factory.mktemp("delayed"), "--topo", "leafspine,leaves=2,spines=1,hosts=1", "--bw", "10",
        "--size", "128KiB", "--delay", f"{DELAY_MS}ms", "--capture", "h1,h2",
    )  # fmt: skip


def test_an_allgather_over_the_kernel_datapath_is_verified_and_counted_exactly(operation: Finished) -> None:
    result = operation.verified()
    assert operation.summary.platform.datapath == "kernel"
    assert operation.summary.platform.sysctls == {}, "the settings are those that the userspace datapath needs"
    assert result.port_mismatches == [], "kernel and OpenFlow count the same at both ends of every link"
    for link, expected in result.link_bytes_theory.items():
        assert result.link_bytes[link] == pytest.approx(expected, rel=0.02)
    assert result.fidelity.verdict != "invalid", result.fidelity


def test_every_chunk_takes_the_time_of_all_the_links_that_it_crosses(operation: Finished) -> None:
    folder = operation.latest / "captures"
    rows = {host: _chunks(read(folder / f"{host}.pcapng")[0]) for host in ("h1", "h2")}
    for sender, receiver in (("h1", "h2"), ("h2", "h1")):
        sent = {row.imm: float(row.time) for row in rows[sender] if row.outbound}
        came = {row.imm: float(row.time) for row in rows[receiver] if not row.outbound}
        assert sent
        assert sent.keys() == came.keys()
        # A capture sees a frame when it leaves the queues of its interface.
        assert min(came[imm] - sent[imm] for imm in sent) >= HOPS * DELAY_MS / 1000


def _chunks(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.opcode == UD_SEND_ONLY_IMM]


# -- netem below the shaping of a link ----------------------------------------------------------------------------

FRAMES = 4000
ETHERTYPE = 0x88B5
SO_TIMESTAMPNS = 35
SPEC = LinkSpec(rate_bps=1_000_000_000, delay_us=DELAY_MS * 1000, queue_packets=FRAMES)


def through(netem: str = "") -> tuple[list[int], list[int], int]:
    """Numbered frames through a link shaped as SPEC says, or with other options of ``netem``.

    In the order in which they came; how many nanoseconds each took by the kernel's clock; and how many the link's queue
    says that it dropped.
    """
    tc.batch("tc", tc_lines(LEFT, SPEC))
    assert differences(LEFT, SPEC, tc.qdiscs()[LEFT], tc.classes(LEFT)) == []
    if netem:
        command(f"tc qdisc replace dev {LEFT} parent 1:1 handle 10: netem {netem} limit {FRAMES}")
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as out,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)) as into,
    ):
        into.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        into.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        into.bind((RIGHT, ETHERTYPE))
        into.setblocking(False)
        out.bind((LEFT, 0))
        for number in range(FRAMES):
            header = RIGHT_MAC + LEFT_MAC + struct.pack("!H", ETHERTYPE)
            out.send(header + struct.pack("!Iq", number, time.time_ns()) + bytes(40))
        until(lambda: _leaf()["qlen"] == 0, "an empty queue")
        dropped = _leaf()["drops"]
        order: list[int] = []
        took: list[int] = []
        while len(order) < FRAMES - dropped:
            data, ancillary, *_ = into.recvmsg(256, 64)
            number, sent_ns = struct.unpack_from("!Iq", data, 14)
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            order.append(number)
            took.append(seconds * 10**9 + nanoseconds - sent_ns)
        with pytest.raises(BlockingIOError):
            into.recv(1)
    return order, took, dropped


def _leaf() -> dict[str, int]:
    return next(one for one in json.loads(tc.run(None, "tc", "-s", "-j", "qdisc", "show")) if one["handle"] == "10:")


def test_a_link_with_a_delay_delays_every_frame_and_loses_none() -> None:
    def body() -> None:
        order, took, dropped = through()
        assert (order, dropped) == (list(range(FRAMES)), 0)
        assert min(took) >= DELAY_MS * 10**6

    in_sandbox(body)


def test_netem_loses_the_part_that_it_was_told_and_counts_every_loss() -> None:
    def body() -> None:
        order, _, dropped = through("loss random 6.25%")
        assert order == sorted(order)
        assert len(order) + dropped == FRAMES
        assert dropped == pytest.approx(FRAMES / 16, abs=5 * (FRAMES / 16 * 15 / 16) ** 0.5)

    in_sandbox(body)


def test_netem_reorders_and_loses_none() -> None:
    def body() -> None:
        order, took, dropped = through(f"delay {DELAY_MS}ms reorder 10%")
        assert dropped == 0
        assert Counter(order) == Counter(range(FRAMES)), "each comes once"
        early = [number for place, number in enumerate(order) if number > place]
        assert early, "some overtake others"
        assert min(took) < DELAY_MS * 10**6, "since they are not delayed"

    in_sandbox(body)
