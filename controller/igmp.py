"""IGMP: what a host says it wants, from frame bytes, or the named reason why they say nothing; and the query that asks.

RFC 2236 (version 2), RFC 3376 (version 3) and the report of version 1. All reports come down to the records of version
3: a version 2 report is "exclude nothing", a leave is "include nothing" (RFC 3376 section 7.3.2). Whatever a host
sends, nothing here raises: bytes that cannot be read are a :class:`Reason`, to be counted.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum, StrEnum
from ipaddress import IPv4Address, IPv4Network

ETHERNET_BYTES = 14
IPV4_MIN_BYTES = 20
IGMP_MIN_BYTES = 8
LINK_LOCAL = IPv4Network("224.0.0.0/24")
"""Routing protocols and discovery: never forwarded by a router, so no group of the fabric (RFC 5771 section 4)."""


class Change(Enum):
    """What a record does to the host's interest in a group; RFC 3376 section 4.2.12 has two names for the first two."""

    EXCLUDE = "everything but these sources"
    INCLUDE = "nothing but these sources"
    ALLOW = "these sources as well"
    BLOCK = "these sources no more"


class Reason(StrEnum):
    """Why bytes, or one record of them, were not taken."""

    NOT_A_HOST_PORT = "not_a_host_port"
    NOT_IPV4 = "not_ipv4"
    NOT_IGMP = "not_igmp"
    FRAGMENT = "fragment"
    TRUNCATED = "truncated"
    BAD_CHECKSUM = "bad_checksum"
    QUERY_FROM_HOST = "query_from_host"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_RECORD = "unknown_record"
    NOT_MULTICAST = "not_multicast"
    LINK_LOCAL = "link_local"


@dataclass(frozen=True, slots=True)
class Record:
    """A host's statement about one group; ``group`` and ``sources`` are dotted IPv4 addresses."""

    change: Change
    group: str
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Report:
    """What one frame held: records in the order of the frame, and the reasons for what was not taken."""

    records: tuple[Record, ...] = ()
    rejected: tuple[Reason, ...] = ()


_RECORD_TYPES = {
    1: Change.INCLUDE,  # MODE_IS_INCLUDE
    2: Change.EXCLUDE,  # MODE_IS_EXCLUDE
    3: Change.INCLUDE,  # CHANGE_TO_INCLUDE_MODE
    4: Change.EXCLUDE,  # CHANGE_TO_EXCLUDE_MODE
    5: Change.ALLOW,  # ALLOW_NEW_SOURCES
    6: Change.BLOCK,  # BLOCK_OLD_SOURCES
}

_QUERY, _V1_REPORT, _V2_REPORT, _V2_LEAVE, _V3_REPORT = 0x11, 0x12, 0x16, 0x17, 0x22

_ALL_HOSTS, _ALERT = bytes((224, 0, 0, 1)), bytes((148, 4, 0, 0))
_QUERIER = b"\x02\x00\x00\x00\x00\x00"
"""A locally administered MAC address that no host has: theirs count from 1."""
_ROBUSTNESS, _INTERVAL_S = 2, 125
"""RFC 3376 sections 8.1 and 8.2."""


class _Unreadable(Exception):
    """Ends the reading of a frame, whatever was read of it before; never leaves this module."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def general_query(response_ds: int = 5) -> bytes:
    """The frame of a version 3 general query (RFC 3376 section 4.1): every host that gets it tells all that it wants.

    Hosts answer at random within ``response_ds`` tenths of a second (up to 127). The source is 0.0.0.0, a querier's
    without an address of its own (RFC 4541 section 2.1.1).
    """
    message = struct.pack("!BBH4sBBH", _QUERY, response_ds, 0, bytes(4), _ROBUSTNESS, _INTERVAL_S, 0)
    message = message[:2] + checksum(message).to_bytes(2) + message[4:]
    header = struct.pack("!BBHHHBBH4s4s4s", 0x46, 0xC0, 24 + len(message), 0, 0, 1, 2, 0, bytes(4), _ALL_HOSTS, _ALERT)
    header = header[:10] + checksum(header).to_bytes(2) + header[12:]
    return b"\x01\x00\x5e\x00\x00\x01" + _QUERIER + b"\x08\x00" + header + message


def read_frame(frame: bytes) -> Report:
    """The report in an Ethernet frame (untagged), as a switch hands it up."""
    try:
        return _read_igmp(_igmp_of(frame))
    except _Unreadable as unreadable:
        return Report(rejected=(unreadable.reason,))


def read_igmp(payload: bytes) -> Report:
    """The report in the payload of an IPv4 packet of protocol 2."""
    try:
        return _read_igmp(payload)
    except _Unreadable as unreadable:
        return Report(rejected=(unreadable.reason,))


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071); over a message with its checksum field filled in rightly it is 0."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _igmp_of(frame: bytes) -> bytes:
    """The IGMP message of a frame; link padding is cut off by the IPv4 total length."""
    if len(frame) < ETHERNET_BYTES + IPV4_MIN_BYTES:
        raise _Unreadable(Reason.TRUNCATED)
    packet = frame[ETHERNET_BYTES:]
    if frame[12:14] != b"\x08\x00" or packet[0] >> 4 != 4:
        raise _Unreadable(Reason.NOT_IPV4)
    if packet[9] != 2:
        raise _Unreadable(Reason.NOT_IGMP)
    header, (total, _, fragment) = (packet[0] & 0xF) * 4, struct.unpack("!HHH", packet[2:8])
    if fragment & 0x3FFF:  # more fragments to come, or not the first
        raise _Unreadable(Reason.FRAGMENT)
    if not IPV4_MIN_BYTES <= header <= total <= len(packet):
        raise _Unreadable(Reason.TRUNCATED)
    return packet[header:total]


def _read_igmp(message: bytes) -> Report:
    if len(message) < IGMP_MIN_BYTES:
        raise _Unreadable(Reason.TRUNCATED)
    if checksum(message):
        raise _Unreadable(Reason.BAD_CHECKSUM)
    kind = message[0]
    if kind == _V3_REPORT:
        return _read_v3(message)
    if kind in {_V1_REPORT, _V2_REPORT}:
        return _sort_out([Record(Change.EXCLUDE, str(IPv4Address(message[4:8])))])
    if kind == _V2_LEAVE:
        return _sort_out([Record(Change.INCLUDE, str(IPv4Address(message[4:8])))])
    raise _Unreadable(Reason.QUERY_FROM_HOST if kind == _QUERY else Reason.UNKNOWN_TYPE)


def _read_v3(message: bytes) -> Report:
    """The group records of a version 3 report (RFC 3376 section 4.2); what follows the last one is ignored (4.2.11)."""
    (count,) = struct.unpack_from("!H", message, 6)
    records: list[Record] = []
    unknown = 0
    at = IGMP_MIN_BYTES
    for _ in range(count):
        if at + 8 > len(message):
            raise _Unreadable(Reason.TRUNCATED)
        kind, auxiliary_words, sources = struct.unpack_from("!BBH", message, at)
        end = at + 8 + 4 * (sources + auxiliary_words)
        if end > len(message):
            raise _Unreadable(Reason.TRUNCATED)
        addresses = [str(IPv4Address(message[i : i + 4])) for i in range(at + 4, at + 8 + 4 * sources, 4)]
        if kind in _RECORD_TYPES:
            records.append(Record(_RECORD_TYPES[kind], addresses[0], frozenset(addresses[1:])))
        else:
            unknown += 1  # section 4.2.12: unknown record types are silently ignored; ours are counted
        at = end
    report = _sort_out(records)
    return Report(report.records, (*report.rejected, *([Reason.UNKNOWN_RECORD] * unknown)))


def _sort_out(records: list[Record]) -> Report:
    """Records of groups that the fabric may carry, apart from those that it refuses."""
    reasons = [_refusal(record.group) for record in records]
    return Report(
        records=tuple(record for record, reason in zip(records, reasons, strict=True) if reason is None),
        rejected=tuple(reason for reason in reasons if reason is not None),
    )


def _refusal(group: str) -> Reason | None:
    address = IPv4Address(group)
    if not address.is_multicast:
        return Reason.NOT_MULTICAST
    return Reason.LINK_LOCAL if address in LINK_LOCAL else None
