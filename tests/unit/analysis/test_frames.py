"""Headers read as columns are those that the wire wrote."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoints.core.packets import Aeth, Opcode, Reth
from endpoints.io import pcapng
from experiments.analysis.frames import Decoded, decode
from experiments.analysis.packets import Packets
from experiments.analysis.pcapng import PcapngReader
from experiments.analysis.window import Window
from tests.unit.analysis.files import Writer
from tests.unit.analysis.run import chunk, packet, read
from topo.addressing import make_host


def decoded(*frames: bytes, captured: int = 1 << 16) -> Decoded:
    data = pcapng.section("x") + pcapng.interface("h1-eth0", 0)
    data += b"".join(pcapng.packet(7, frame[:captured], len(frame), 1) for frame in frames)
    (batch,) = PcapngReader(Window(io.BytesIO(data)))
    assert isinstance(batch, Packets)
    return decode(batch)


def one(frame: bytes, captured: int = 1 << 16) -> dict[str, int]:
    (row,) = decoded(frame, captured=captured).frames
    return {name: int(row[name]) for name in row.dtype.names}


def test_a_multicast_chunk() -> None:
    found = one(chunk(2, 3, op=5))
    assert found == {
        "time_ns": 7, "va": 0, "bytes": 0, "psn": 23, "qpn": 0xFFFFFF, "word": 5 << 24 | 23, "size": 256 + 70,
        "payload": 256, "src": 2, "dst": -1, "tree": 1, "point": 0, "direction": 0, "opcode": 0x65, "syndrome": 0,
    }  # fmt: skip
    assert one(chunk(2, 9))["payload"] == 1, "without its pad"


@pytest.mark.parametrize("opcode", [opcode for opcode in Opcode if opcode is not Opcode.UD_SEND_ONLY_IMM])
def test_every_packet_of_a_reliable_connection(opcode: Opcode) -> None:
    from endpoints.core import layout

    fields: dict[str, object] = {}
    if opcode in layout.RETH_OPCODES:
        fields["reth"] = Reth(0x123456789AB, 77, 0x89ABCDEF)
    if opcode in layout.AETH_OPCODES:
        fields["aeth"] = Aeth(0x62, 5)
    if opcode in layout.IMM_OPCODES:
        fields["imm"] = 0xCAFE
    if opcode not in layout.NO_PAYLOAD_OPCODES:
        fields["payload"] = b"seven b"
    found = one(packet(3, 1, opcode, 0xABCDEF, **fields))
    assert (found["src"], found["dst"], found["tree"], found["psn"]) == (3, 1, -1, 0xABCDEF)
    assert found["opcode"] == opcode
    assert found["payload"] == len(fields.get("payload", b""))  # type: ignore[arg-type]
    assert (found["va"], found["word"], found["bytes"]) == fields.get("reth", (0, 0, 0))
    assert found["syndrome"] == (0x62 if "aeth" in fields else 0)


def test_headers_are_enough_and_less_is_counted() -> None:
    frame = read(0, 1, 4, 3, psn=9)[0]
    assert one(frame, captured=70)["va"] == 4 * 256
    cut = decoded(frame, frame, captured=69)
    assert (len(cut.frames), cut.short.tolist()) == (0, [True, True])


def test_hosts_go_by_the_systematic_mac_addresses() -> None:
    frame = bytearray(packet(0, 1, Opcode.RC_SEND_ONLY_IMM, 1, imm=1))
    for number in (0, 254, 255, 256, 0xFFFD):
        frame[6:12] = bytes.fromhex(make_host(number, "10.0.0.1").mac.replace(":", ""))
        assert one(bytes(frame))["src"] == number
    frame[6:12] = b"\x06" + bytes(5)
    assert one(bytes(frame))["src"] == -1


@pytest.mark.parametrize(
    ("at", "value"),
    [(12, 0x86), (14, 0x46), (20, 0x20), (23, 6), (36, 0), (43, 0x01), (42, 0x77), (17, 40)],
    ids=["IPv6", "IP options", "fragment", "TCP", "other port", "transport version", "opcode", "length"],
)
def test_what_is_no_frame_of_ours_is_left_out(at: int, value: int) -> None:
    frame = bytearray(chunk(1, 1))
    frame[at] = value
    assert not len(decoded(bytes(frame)).frames)


@given(st.lists(st.binary(max_size=120), min_size=1))
def test_whatever_bytes_come_nothing_raises(frames: list[bytes]) -> None:
    prefix = chunk(0, 0)[:42]
    found = decoded(*frames, *(prefix + frame for frame in frames))
    assert len(found.rows) == 2 * len(frames)
    assert np.count_nonzero(found.rows) == len(found.frames)


def test_times_and_interfaces_come_along() -> None:
    writer = Writer(">")
    frames = [chunk(0, index) for index in range(3)]
    data = writer.section() + writer.interface() * 2
    data += b"".join(writer.packet(at % 2, at, frame) for at, frame in enumerate(frames))
    (batch,) = PcapngReader(Window(io.BytesIO(data)))
    found = decode(batch).frames
    assert found["time_ns"].tolist() == [0, 1000, 2000]
    assert found["point"].tolist() == [0, 1, 0]
