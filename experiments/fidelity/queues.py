"""What waits in the queues of shaped links, from the kernel's answer to RTM_GETQDISC (linux/rtnetlink.h). Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_QDISC = struct.Struct("=BxxxiIII")  # struct tcmsg: family, interface, handle, parent, info
_ATTRIBUTE = struct.Struct("=HH")  # struct rtattr: length, type
_REQUEST, _DUMP = 0x001, 0x300
_ERROR, _DONE, _NEW_QDISC, _GET_QDISC = 2, 3, 36, 38
_KIND, _OPTIONS, _STATISTICS, _QUEUE = 1, 2, 7, 3
_QUEUE_STATISTICS = struct.Struct("=II")  # struct gnet_stats_queue: packets, bytes

LEAF = 0x00100000
"""Handle ``10:``, the leaf in which ``topo.shaping`` has a link's frames wait."""

REQUEST = _HEADER.pack(_HEADER.size + _QDISC.size, _GET_QDISC, _REQUEST | _DUMP, 1, 0) + _QDISC.pack(0, 0, 0, 0, 0)
"""Asks for the qdiscs of all interfaces."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A link's queue at one moment: interface by index, packets and bytes that wait, packets that it can hold."""

    index: int
    packets: int
    bytes: int
    limit: int


def parse_queues(answer: bytes) -> tuple[list[Queue], bool]:
    """The links' queues in a part of the answer, and whether it was the last part."""
    queues: list[Queue] = []
    for kind, body in _messages(answer):
        if kind in (_DONE, _ERROR):
            return queues, True
        if kind == _NEW_QDISC:
            _, index, handle, _, _ = _QDISC.unpack_from(body)
            if handle == LEAF:
                queues.append(_queue(index, dict(_attributes(body[_QDISC.size :]))))
    return queues, False


def _queue(index: int, attributes: dict[int, bytes]) -> Queue:
    statistics = dict(_attributes(attributes.get(_STATISTICS, b"")))
    packets, size = _QUEUE_STATISTICS.unpack_from(statistics.get(_QUEUE, bytes(8)))
    at = 4 if attributes.get(_KIND) == b"netem\0" else 0  # tc_netem_qopt has the latency first, tc_fifo_qopt nothing
    return Queue(index, packets, size, *struct.unpack_from("=I", attributes[_OPTIONS], at))


def _messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(answer):
        length, kind, *_ = _HEADER.unpack_from(answer, at)
        yield kind, answer[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        yield kind & 0x3FFF, body[at + _ATTRIBUTE.size : at + length]
        at += max(4, (length + 3) & ~3)
