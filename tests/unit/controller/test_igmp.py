from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3mq
from scapy.layers.inet import IP, IPOption_Router_Alert
from scapy.layers.l2 import Ether

from controller.igmp import Change, Reason, Record, Report, checksum, general_query, read_frame, read_igmp


def message(kind: int, group: str) -> bytes:
    """An IGMP message of 8 bytes (RFC 2236 section 2)."""
    body = struct.pack("!BBH4s", kind, 0, 0, IPv4Address(group).packed)
    return summed(body)


def summed(body: bytes) -> bytes:
    return body[:2] + checksum(body[:2] + b"\0\0" + body[4:]).to_bytes(2) + body[4:]


def record(kind: int, group: str, *sources: str, auxiliary: bytes = b"") -> bytes:
    """A group record (RFC 3376 section 4.2.3)."""
    head = struct.pack("!BBH4s", kind, len(auxiliary) // 4, len(sources), IPv4Address(group).packed)
    return head + b"".join(IPv4Address(source).packed for source in sources) + auxiliary


def v3(*records: bytes, count: int | None = None, tail: bytes = b"") -> bytes:
    head = struct.pack("!BBHHH", 0x22, 0, 0, 0, len(records) if count is None else count)
    return summed(head + b"".join(records) + tail)


def frame(payload: bytes, *, options: bytes = b"\x94\x04\0\0", protocol: int = 2, fragment: int = 0) -> bytes:
    """In IPv4 with the Router Alert option, as a kernel sends reports."""
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0xC0, 20 + len(options) + len(payload), 0, fragment, 1, protocol, 0,
        IPv4Address("10.0.0.2").packed, IPv4Address("224.0.0.22").packed,
    )  # fmt: skip
    return bytes.fromhex("01005e000016 020000000001 0800") + header + options + payload


# What a Linux 6.18 kernel sent: IP_ADD_MEMBERSHIP and IP_DROP_MEMBERSHIP of 239.1.1.1 with force_igmp_version 3 and 2,
# then IP_ADD_SOURCE_MEMBERSHIP of (10.0.0.9, 232.1.1.1) and the closing of its socket.
KERNEL = {
    "v3 join": (
        "01005e000016020000000001080046c00028000040000102f9f70a000002e0000016940400002200e9fb0000000104000000ef010101",
        Record(Change.EXCLUDE, "239.1.1.1"),
    ),
    "v3 leave": (
        "01005e000016020000000001080046c00028000040000102f9f70a000002e0000016940400002200eafb0000000103000000ef010101",
        Record(Change.INCLUDE, "239.1.1.1"),
    ),
    "v2 join": (
        "01005e010101020000000001080046c00020000040000102ea130a000002ef010101940400001600f9fcef010101",
        Record(Change.EXCLUDE, "239.1.1.1"),
    ),
    "v2 leave": (
        "01005e000002020000000001080046c00020000040000102fa130a000002e0000002940400001700f8fcef010101",
        Record(Change.INCLUDE, "239.1.1.1"),
    ),
    "v3 source join": (
        (
            "01005e000016020000000001080046c0002c000040000102f9f30a000002e0000016940400002200e5f10000000105000001"
            "e80101010a000009"
        ),
        Record(Change.ALLOW, "232.1.1.1", frozenset({"10.0.0.9"})),
    ),
    "v3 source leave": (
        (
            "01005e000016020000000001080046c0002c000040000102f9f30a000002e0000016940400002200e4f10000000106000001"
            "e80101010a000009"
        ),
        Record(Change.BLOCK, "232.1.1.1", frozenset({"10.0.0.9"})),
    ),
}


@pytest.mark.parametrize("name", KERNEL)
def test_what_a_linux_kernel_sends_is_read(name: str) -> None:
    data, expected = KERNEL[name]
    assert read_frame(bytes.fromhex(data)) == Report((expected,))


@pytest.mark.parametrize(
    ("kind", "change"),
    [(0x12, Change.EXCLUDE), (0x16, Change.EXCLUDE), (0x17, Change.INCLUDE)],
    ids=["v1", "v2", "leave"],
)
def test_reports_before_version_3_exclude_or_include_nothing(kind: int, change: Change) -> None:
    assert read_frame(frame(message(kind, "239.1.2.3"))) == Report((Record(change, "239.1.2.3"),))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (1, Change.INCLUDE),
        (2, Change.EXCLUDE),
        (3, Change.INCLUDE),
        (4, Change.EXCLUDE),
        (5, Change.ALLOW),
        (6, Change.BLOCK),
    ],
)
def test_each_record_type_of_version_3(kind: int, change: Change) -> None:
    report = read_igmp(v3(record(kind, "239.1.1.1", "10.0.0.9", "10.0.0.8")))
    assert report == Report((Record(change, "239.1.1.1", frozenset({"10.0.0.8", "10.0.0.9"})),))


def test_many_records_keep_their_order_past_auxiliary_data() -> None:
    report = read_igmp(
        v3(record(4, "239.1.1.1", auxiliary=b"12345678"), record(3, "239.1.1.2"), record(4, "239.1.1.3", "10.0.0.1"))
    )
    assert [r.group for r in report.records] == ["239.1.1.1", "239.1.1.2", "239.1.1.3"]
    assert report.rejected == ()


def test_what_follows_the_last_record_is_ignored() -> None:
    assert read_igmp(v3(record(4, "239.1.1.1"), tail=b"later versions")).rejected == ()


def test_link_padding_is_not_read() -> None:
    assert read_frame(frame(message(0x16, "239.1.1.1")) + b"\xff" * 20).records == (
        Record(Change.EXCLUDE, "239.1.1.1"),
    )


def test_a_packet_without_router_alert_is_read() -> None:
    assert read_frame(frame(message(0x16, "239.1.1.1"), options=b"")).records


def test_one_refused_record_does_not_spoil_the_others() -> None:
    report = read_igmp(
        v3(record(4, "224.0.0.251"), record(4, "239.1.1.1"), record(9, "239.1.1.2"), record(4, "10.0.0.1"))
    )
    assert report.records == (Record(Change.EXCLUDE, "239.1.1.1"),)
    assert sorted(report.rejected) == [Reason.LINK_LOCAL, Reason.NOT_MULTICAST, Reason.UNKNOWN_RECORD]


def broken_checksum() -> bytes:
    good = message(0x16, "239.1.1.1")
    return good[:-1] + bytes([good[-1] ^ 1])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED),
        (frame(b"")[:33], Reason.TRUNCATED),
        (frame(message(0x16, "239.1.1.1"))[:-1], Reason.TRUNCATED),
        (frame(message(0x16, "239.1.1.1")[:7]), Reason.TRUNCATED),
        (frame(v3(record(4, "239.1.1.1"), count=2)), Reason.TRUNCATED),
        (frame(v3(record(4, "239.1.1.1")[:6], count=1)), Reason.TRUNCATED),
        (frame(v3(record(4, "239.1.1.1", "10.0.0.1")[:-1], count=1)), Reason.TRUNCATED),
        (frame(broken_checksum()), Reason.BAD_CHECKSUM),
        (frame(message(0x11, "0.0.0.0")), Reason.QUERY_FROM_HOST),
        (frame(message(0x13, "239.1.1.1")), Reason.UNKNOWN_TYPE),
        (frame(message(0x16, "10.0.0.1")), Reason.NOT_MULTICAST),
        (frame(message(0x16, "224.0.0.1")), Reason.LINK_LOCAL),
        (frame(message(0x16, "239.1.1.1"), protocol=17), Reason.NOT_IGMP),
        (frame(message(0x16, "239.1.1.1"), fragment=0x2000), Reason.FRAGMENT),
        (frame(message(0x16, "239.1.1.1"), fragment=1), Reason.FRAGMENT),
        (b"\xff" * 12 + b"\x08\x06" + b"\0" * 40, Reason.NOT_IPV4),
        (b"\xff" * 12 + b"\x08\x00" + b"\x60" + b"\0" * 40, Reason.NOT_IPV4),
    ],
)
def test_what_cannot_be_taken_has_a_named_reason(data: bytes, reason: Reason) -> None:
    assert read_frame(data) == Report(rejected=(reason,))


@given(st.binary(max_size=120))
def test_no_bytes_raise_and_none_that_are_no_report_pass_in_silence(data: bytes) -> None:
    assert read_frame(data).rejected
    assert read_igmp(data).rejected
    assert read_frame(frame(data)).rejected


@given(st.sampled_from([0x12, 0x16, 0x17, 0x22]), st.binary(min_size=7, max_size=80))
@example(0x22, b"\0\0\0\0\0\xff\xff")
def test_no_message_with_a_right_checksum_raises(kind: int, rest: bytes) -> None:
    report = read_igmp(summed(bytes([kind]) + rest))
    assert Reason.BAD_CHECKSUM not in report.rejected


@given(st.integers(0, 60), st.integers(1, 255))
def test_every_flipped_byte_of_a_report_is_noticed_by_the_checksum(at: int, flip: int) -> None:
    good = bytearray(v3(record(4, "239.1.1.1", "10.0.0.1"), record(3, "239.1.1.2")))
    at %= len(good)
    good[at] ^= flip
    assert read_igmp(bytes(good)).rejected == (Reason.BAD_CHECKSUM,)


def test_a_general_query_is_what_scapy_makes_of_the_rfc() -> None:
    query = Ether(general_query(5))
    assert (query.dst, query[IP].src, query[IP].dst, query[IP].ttl) == ("01:00:5e:00:00:01", "0.0.0.0", "224.0.0.1", 1)
    assert isinstance(query[IP].options[0], IPOption_Router_Alert)
    assert (query[IGMPv3].type, query[IGMPv3].mrcode, query[IGMPv3mq].gaddr) == (0x11, 5, "0.0.0.0")
    assert (query[IGMPv3mq].qrv, query[IGMPv3mq].qqic, query[IGMPv3mq].numsrc) == (2, 125, 0)
    again = query.copy()
    del again[IP].chksum, again[IGMPv3].chksum
    assert bytes(again) == general_query(5), "both checksums are right"
    assert read_frame(general_query()) == Report(rejected=(Reason.QUERY_FROM_HOST,))
