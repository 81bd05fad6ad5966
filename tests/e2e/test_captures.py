"""Captures of a real run as others read them: tshark's dissector, Scapy's reader, the ICRC as specified."""

from __future__ import annotations

import subprocess
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader

from tests.e2e.command import NEEDS, Finished, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS, "tshark")]

HOSTS, CHUNKS, MTU = 4, 40, 1024
LAST = 100
"""Bytes of each rank's last chunk, so that not all frames have the same length."""
ADDRESSES = ["10.0.0.2", "10.0.0.3", "10.0.1.2", "10.0.1.3"]
IGMP = "2"
UD_SEND_ONLY_IMM, READ_RESPONSES = 0x65, {0x0D, 0x0E, 0x0F, 0x10}
FIELDS = (
    "frame.time_epoch", "frame.len", "frame.packet_flags_direction", "ip.proto", "ip.src", "ip.dst", "udp.dstport",
    "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp", "infiniband.immdt",
    "infiniband.invariant.crc",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A frame: its bytes, and what tshark says of it."""

    frame: bytes
    time: str
    outbound: bool
    src: str
    dst: str
    opcode: int
    psn: int
    destqp: int
    imm: str
    icrc: int

    @property
    def operation(self) -> int:
        """The operation's id, in the upper 8 bits of the immediate."""
        return int(self.imm, 16) >> 24

    @property
    def chunk(self) -> int:
        """The chunk's number, in the lower 24."""
        return int(self.imm, 16) & 0xFFFFFF


@dataclass(frozen=True)
class Captured:
    done: Finished
    data: bytes
    rows: dict[str, list[Row]]
    lengths: dict[str, dict[bool, int]]
    """Bytes of all frames, RoCE or not, by capture and whether they went out of its interface."""

    def multicast(self, name: str) -> list[Row]:
        """The multicast frames of the operation that the summary is about, the last: others may warm up before it."""
        rows = [row for row in self.rows[name] if row.opcode == UD_SEND_ONLY_IMM]
        return [row for row in rows if row.operation == rows[-1].operation]


def read(file: Path) -> tuple[list[Row], dict[bool, int]]:
    """The RoCEv2 frames of a capture, and the bytes of all frames by direction.

    Asserts that no other frames are in it but the kernel's repeated IGMP reports, and that none is malformed.
    """
    command = ["tshark", "-r", str(file), "-T", "fields", "-E", "occurrence=f"]
    for field in (*FIELDS, "_ws.malformed"):
        command += ["-e", field]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    with RawPcapNgReader(str(file)) as reader:
        frames = [frame for frame, _ in reader]
    assert len(told) == len(frames), "tshark and Scapy find as many frames"
    rows, lengths = [], {True: 0, False: 0}
    for frame, line in zip(frames, told, strict=True):
        time, length, direction, proto, src, dst, port, opcode, psn, qp, imm, icrc, malformed = line.split("\t")
        assert (malformed, int(length)) == ("", len(frame))
        outbound = int(direction, 16) & 3 == 2
        lengths[outbound] += len(frame)
        if proto == IGMP:
            continue
        assert port == "4791"
        rows.append(
            Row(frame, time, outbound, src, dst, int(opcode), int(psn), int(qp, 16), imm, int(icrc, 16)),
        )
    return rows, lengths


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("captured")
    size = (CHUNKS - 1) * MTU + LAST
    data = b"".join(zlib.crc32(number.to_bytes(4, "big")).to_bytes(4, "big") for number in range(HOSTS * size // 4))
    (folder / "input").write_bytes(data)
    done = run(
        folder, "--topo", "leafspine,leaves=2,spines=2,hosts=2", "--mtu", str(MTU), "--input", str(folder / "input"),
        "--impair", "drop:rx:h1:psn=50-59", "--capture", "h1,0,l0-s0,s1-l0,h4-l1",
    )  # fmt: skip
    done.verified()
    files = {path.stem: path for path in (done.latest / "captures").iterdir()}
    found = {name: read(path) for name, path in files.items()}
    rows = {name: frames for name, (frames, _) in found.items()}
    return Captured(done, data, rows, {name: lengths for name, (_, lengths) in found.items()})


def test_each_host_and_link_has_a_file_that_names_its_interface(captured: Captured) -> None:
    assert set(captured.rows) == {"h1", "l0-s0", "l0-s1", "h4-l1"}
    for name, interface in (("h1", "h1-eth0"), ("l0-s0", "l0-eth3"), ("l0-s1", "l0-eth4"), ("h4-l1", "h4-eth0")):
        about = subprocess.run(
            ["capinfos", captured.done.latest / "captures" / f"{name}.pcapng"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert f"Name = {interface}\n" in about


def test_every_multicast_frame_is_in_the_captures_once_with_its_psn_immediate_and_bytes(captured: Captured) -> None:
    expected = [(ADDRESSES[chunk // CHUNKS], chunk) for chunk in range(HOSTS * CHUNKS)]
    size = len(captured.data) // HOSTS
    for host in ("h1", "h4-l1"):
        rows = captured.multicast(host)
        assert sorted((row.src, row.chunk) for row in rows) == sorted(expected)
        for row in rows:
            assert row.psn == row.chunk
            assert (row.dst, row.destqp) == ("239.192.0.1", 0xFFFFFF)
            rank, chunk = divmod(row.psn, CHUNKS)
            begin = rank * size + chunk * MTU
            payload = captured.data[begin : min(begin + MTU, (rank + 1) * size)]
            assert row.frame[66:-4] == payload
            assert row.outbound == (row.src == {"h1": ADDRESSES[0], "h4-l1": ADDRESSES[3]}[host])


def test_links_carry_as_many_multicast_frames_as_the_summary_says(captured: Captured) -> None:
    result = captured.done.verified()
    counts = {name: len(captured.multicast(name)) for name in captured.rows}
    assert result.packets.sent == HOSTS * CHUNKS
    assert counts["h1"] == counts["h4-l1"] == HOSTS * CHUNKS
    assert sorted([counts["l0-s0"], counts["l0-s1"]]) == [0, HOSTS * CHUNKS], "the tree has one spine"
    for outbound, link in ((True, "h1->l0"), (False, "l0->h1")):
        chunks = sum(len(row.frame) for row in captured.multicast("h1") if row.outbound == outbound)
        assert chunks < result.link_bytes[link] <= captured.lengths["h1"][outbound]


def test_the_chunks_that_were_lost_come_by_rdma_read(captured: Captured) -> None:
    opcodes = Counter(row.opcode for row in captured.rows["h1"] if not row.outbound)
    assert sum(opcodes[opcode] for opcode in READ_RESPONSES) >= 10


def test_every_icrc_is_right(captured: Captured) -> None:
    for row in (row for rows in captured.rows.values() for row in rows):
        assert row.frame[-4:] == icrc(row.frame)
        assert row.icrc == int.from_bytes(row.frame[-4:], "big"), "tshark finds the ICRC where it is"
    some = captured.rows["h1"]
    for row in (some[0], some[-1], captured.multicast("h1")[0]):
        bth = Ether(row.frame)[BTH]
        assert bth.compute_icrc(row.frame[42:-4]) == row.frame[-4:], "so says Scapy"


def icrc(frame: bytes) -> bytes:
    """Annex A17 of the InfiniBand Architecture, vol. 1: CRC-32 of 64 ones and of the packet from its IP header on, with
    ones for what routers change: type of service, time to live, both checksums, and BTH's reserved byte."""
    packet = bytearray(frame[14:-4])
    for changed in (1, 8, 10, 11, 26, 27, 32):
        packet[changed] = 0xFF
    return zlib.crc32(b"\xff" * 8 + packet).to_bytes(4, "little")


def test_times_are_finer_than_microseconds_and_never_run_back(captured: Captured) -> None:
    for rows in captured.rows.values():
        times = [row.time for row in rows]
        assert all(len(time.partition(".")[2]) == 9 for time in times)
        assert times == sorted(times)
        assert any(not time.endswith("000") for time in times)
