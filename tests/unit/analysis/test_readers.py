"""Capture files to columns: ours and others', whole, cut and damaged."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoints.io import pcapng
from experiments.analysis.files import opened
from experiments.analysis.packets import IN, OUT, UNKNOWN, DamagedCapture, Interface, Reader
from experiments.analysis.pcap import PcapReader, order_of
from experiments.analysis.pcapng import PcapngReader
from experiments.analysis.window import Window
from experiments.errors import UserError
from tests.unit.analysis.files import Writer

NS = st.integers(0, (1 << 62) - 1)
FRAMES = st.binary(max_size=200)
NANOSECONDS = (9, b"\x09")

Row = tuple[int, int, bytes, int, int]
"""Interface, time, frame, its length on the wire, direction."""


def reader_of(data: bytes, size: int = 1 << 12) -> PcapngReader:
    return PcapngReader(Window(io.BytesIO(data), size))


def rows(reader: Reader) -> list[Row]:
    found: list[Row] = []
    for packets in reader:
        columns = (packets.interface, packets.time_ns, packets.start, packets.captured, packets.length)
        for (interface, time, start, captured, length), direction in zip(
            np.array(columns).T.tolist(), packets.direction.tolist(), strict=True
        ):
            found.append((interface, time, bytes(packets.data[start : start + captured]), length, direction))
    return found


@given(st.lists(st.tuples(NS, FRAMES, st.integers(0, 9000), st.sampled_from([1, 2]))), st.integers(1, 600))
def test_what_our_captures_write_is_read_back_whatever_the_window(
    packets: list[tuple[int, bytes, int, int]], size: int
) -> None:
    data = pcapng.section("test") + pcapng.interface("h1-eth0", 9216)
    for time, frame, more, direction in packets:
        data += pcapng.packet(time, frame, len(frame) + more, direction)
    reader = reader_of(data + pcapng.statistics(5, len(packets), 3), size)
    ways = {1: IN, 2: OUT}
    assert rows(reader) == [(0, time, frame, len(frame) + more, ways[way]) for time, frame, more, way in packets]
    assert (reader.interfaces, reader.warnings, reader.cut) == ([Interface("h1-eth0", 1, 10, 9, 0, 3)], [], False)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("resolution", "units", "time"),
    [
        (None, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (6, 7, 7_000),
        (9, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (3, 5, 5_000_000),
        (0, 2, 2_000_000_000),
        (12, 1_999_000, 1_999),
        (0x80 | 10, 1024 * 3 + 512, 3_500_000_000),
        (0x80 | 32, (1 << 32) * 1_700_000_000 + (1 << 31), 1_700_000_000_500_000_000),
        (0x80 | 40, (1 << 40) * 3 + (1 << 38), 3_250_000_000),
    ],
)
def test_times_of_every_resolution_and_byte_order(order: str, resolution: int | None, units: int, time: int) -> None:
    writer = Writer(order)
    options = [] if resolution is None else [writer.option(9, bytes([resolution]))]
    data = writer.section() + writer.interface(*options) + writer.packet(0, units, b"frame")
    assert rows(reader_of(data)) == [(0, time, b"frame", 5, UNKNOWN)]


@pytest.mark.parametrize("order", "<>")
def test_several_interfaces_with_offsets_comments_and_flags_in_any_order(order: str) -> None:
    writer = Writer(order)
    flags = [writer.option(2, writer.pack("I", 0x50 | way)) for way in (0, 1, 2)]
    comment = writer.option(1, b"seen")
    data = (
        writer.section()
        + writer.interface(writer.option(2, b"h1-eth0"), writer.option(*NANOSECONDS))
        + writer.packet(0, 9, b"0", comment, flags[2], writer.option(0, b""))
        + writer.interface(writer.option(2, b"e00-eth3\0"), writer.option(14, writer.pack("q", -1)), link_type=113)
        + writer.packet(1, 2_000_000, b"1111", flags[1])
        + writer.packet(0, 11, b"", flags[0])
        + writer.packet(0, 12, b"abc", comment, length=77)
    )
    reader = reader_of(data)
    assert rows(reader) == [
        (0, 9, b"0", 1, OUT),
        (1, 1_000_000_000, b"1111", 4, IN),
        (0, 11, b"", 0, UNKNOWN),
        (0, 12, b"abc", 77, UNKNOWN),
    ]
    assert [(one.name, one.link_type) for one in reader.interfaces] == [("h1-eth0", 1), ("e00-eth3", 113)]


def test_sections_of_different_byte_orders_with_interfaces_of_their_own() -> None:
    data = b"".join(
        writer.section() + writer.interface(writer.option(2, name)) + writer.packet(0, 1, name)
        for writer, name in ((Writer("<"), b"one"), (Writer(">"), b"two"), (Writer("<"), b"three"))
    )
    reader = reader_of(data)
    assert [(interface, frame) for interface, _, frame, _, _ in rows(reader)] == [
        (0, b"one"),
        (1, b"two"),
        (2, b"three"),
    ]
    assert [one.name for one in reader.interfaces] == ["one", "two", "three"]


def test_other_blocks_are_skipped_and_packets_without_a_time_are_told() -> None:
    writer = Writer()
    names, secret, custom = (writer.block(kind, b"something" * 9) for kind in (4, 10, 0xBAD))
    simple = writer.block(3, writer.pack("I", 4) + b"ABCD")
    data = writer.section() + names + writer.interface() + secret + simple + writer.packet(0, 1, b"x") + custom + simple
    reader = reader_of(data)
    assert [frame for _, _, frame, _, _ in rows(reader)] == [b"x"]
    assert reader.warnings == ["2 simple packet blocks are left out: they have no time"]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("magic", "factor"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_classic_pcap_of_either_byte_order_and_unit(order: str, magic: int, factor: int) -> None:
    packets = [(1_700_000_000 + n, 999_999 - n, b"frame" * n) for n in range(50)]
    data = Writer(order).pcap(magic, packets)
    assert order_of(data[:4]) == order
    reader = PcapReader(Window(io.BytesIO(data), 64))
    assert rows(reader) == [
        (0, second * 10**9 + part * factor, frame, len(frame) + 5, UNKNOWN) for second, part, frame in packets
    ]
    assert (reader.warnings, reader.cut) == ([], False)
    for cut in (1, 15, 16, 100):
        reader = PcapReader(Window(io.BytesIO(data[:-cut]), 64))
        assert len(rows(reader)) < 50
        assert (len(reader.warnings), reader.cut) == (1, True)


WHOLE = (
    Writer().section()
    + Writer().interface(Writer().option(2, b"h1-eth0"))
    + b"".join(Writer().packet(0, time, b"frame" * time) for time in range(8))
)


def test_a_file_cut_anywhere_gives_the_whole_packets_and_one_warning() -> None:
    borders = {len(WHOLE)}
    at = 0
    while at < len(WHOLE):
        borders.add(at)
        at += int.from_bytes(WHOLE[at + 4 : at + 8], "little")
    full = rows(reader_of(WHOLE))
    for length in range(1, len(WHOLE) + 1):
        reader = reader_of(WHOLE[:length], 60)
        found = rows(reader)
        assert found == full[: len(found)]
        assert len(reader.warnings) == (length not in borders)
        assert reader.cut == (length not in borders)


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("a block of kind 6 cannot have 0 bytes", Writer().pack("II", 6, 0) + bytes(40)),
        ("a block of kind 2989 cannot have 8 bytes", Writer().pack("II", 0xBAD, 8) + bytes(40)),
        ("a block of kind 6 cannot have 33 bytes", Writer().pack("II", 6, 33) + bytes(40)),
        ("a block of kind 4 cannot have 4294967292 bytes", Writer().pack("II", 4, 0xFFFFFFFC) + bytes(40)),
        ("the lengths of a packet contradict each other", Writer().packet(0, 1, b"frame")[:-4] + bytes(4)),
        ("the lengths of a packet contradict each other", Writer().block(6, Writer().pack("IIIII", 0, 0, 0, 99, 99))),
        ("a packet of an unknown interface", Writer().packet(1, 1, b"frame")),
        ("a section header without its byte-order magic", Writer().block(0x0A0D0D0A, bytes(16))),
    ],
)
def test_damage_is_told_with_its_place(what: str, data: bytes) -> None:
    with pytest.raises(DamagedCapture) as told:
        rows(reader_of(WHOLE + data + WHOLE, 100))
    assert str(told.value) == f"damaged at byte {len(WHOLE)}: {what}"


@given(st.data(), st.booleans())
def test_whatever_is_wrong_in_a_file_only_damage_is_raised(data: st.DataObject, classic: bool) -> None:
    whole = Writer(">").pcap(0xA1B2C3D4, [(1, 2, b"frame" * 9)] * 4) if classic else WHOLE
    broken = bytearray(whole)
    for at in data.draw(st.lists(st.integers(4, len(whole) - 1), max_size=4)):
        broken[at] = data.draw(st.integers(0, 255))
    window = Window(io.BytesIO(broken), data.draw(st.integers(24, 300)))
    with suppress(DamagedCapture):
        rows(PcapReader(window) if classic else PcapngReader(window))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty, not even a header is in it"),
        (b"\n\r", "begins with 0a0d, neither pcapng nor pcap"),
        (b"GIF89a, not a capture", "begins with 47494638, neither pcapng nor pcap"),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(data)
    with pytest.raises(UserError) as told, opened(file):
        pass
    assert str(told.value) == f"capture {str(file)!r}: {why}"


def test_memory_does_not_grow_with_the_file() -> None:
    head = pcapng.section("x") + pcapng.interface("y", 0)
    block = pcapng.packet(1, bytes(4000), 4000, 1)
    count = 5000

    class Long:
        """A file that is made while it is read: its head, then ``count`` blocks."""

        def __init__(self) -> None:
            self.rest = bytearray(head)
            self.left = count

        def readinto(self, buffer: memoryview, /) -> int:
            if not self.rest and self.left:
                self.left -= 1
                self.rest += block
            size = min(len(buffer), len(self.rest))
            buffer[:size] = self.rest[:size]
            del self.rest[:size]
            return size

    window = Window(Long(), 1 << 16)
    assert sum(len(packets) for packets in PcapngReader(window)) == count
    assert len(window.data) < 1 << 17
