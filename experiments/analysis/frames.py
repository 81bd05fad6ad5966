"""RoCEv2 frames of a batch of packets as one table: the headers read as columns, payloads left alone.

ICRCs are not checked: a capture may hold only the beginning of each frame. Nothing raises; what is no frame of ours, or
was captured too short to tell, is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from endpoints.core import layout
from endpoints.core.packets import Opcode
from experiments.analysis.packets import Packets
from experiments.communicators import FIRST_GROUP

FRAME: Final = np.dtype(
    [
        ("time_ns", "i8"),
        ("va", "u8"),  # RETH: where in the peer's buffer; 0 where there is none, as below
        ("bytes", "u4"),  # RETH: how many
        ("psn", "u4"),
        ("qpn", "u4"),  # destination queue pair; each has PSNs of its own
        ("word", "u4"),  # immediate of a multicast chunk, or remote key of a RETH: both hold the operation's id
        ("size", "u4"),  # bytes on the wire
        ("payload", "u4"),  # bytes of payload
        ("src", "i4"),  # sending host, from 0; -1 unknown
        ("dst", "i4"),  # receiving host; -1 unknown, or a multicast group
        ("tree", "i2"),  # multicast tree; -1 for everything else
        ("point", "i2"),  # where it was captured
        ("direction", "i1"),
        ("opcode", "u1"),
        ("syndrome", "u1"),  # AETH
    ]
)
"""A RoCEv2 frame in 56 bytes, of whatever size it was itself."""

Frames = npt.NDArray[np.void]
Bool = npt.NDArray[np.bool_]

UD: Final = int(Opcode.UD_SEND_ONLY_IMM)
WIDTH: Final = layout.MAX_HEADER_LENGTH
_MAC: Final = 0x02000000
"""The first four bytes of a host's MAC address; the other two are its number, from 1 (``topo.addressing``)."""
_GROUPS: Final = 1 << 12
"""Multicast addresses from the first tree's on that are taken for trees."""


def _table(opcodes: frozenset[Opcode]) -> Bool:
    found = np.zeros(256, np.bool_)
    found[list(opcodes)] = True
    return found


_HEADER = np.zeros(256, np.int64)
for _opcode in Opcode:
    _HEADER[_opcode] = layout.header_length(_opcode)
_RETH, _AETH = _table(layout.RETH_OPCODES), _table(layout.AETH_OPCODES)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The RoCEv2 frames of a batch; which packets they were, and which others were cut too short, shape (n,)."""

    frames: Frames
    rows: Bool
    short: Bool


def decode(packets: Packets) -> Decoded:
    """Read the headers of all packets; ``point`` is left at the packet's interface."""
    heads = packets.heads(WIDTH)

    def be(at: int, kind: str) -> npt.NDArray[Any]:
        return heads[:, at : at + np.dtype(kind).itemsize].view(f">{kind}")[:, 0]

    envelope = packets.captured >= layout.BTH
    envelope &= (be(layout.ETHERTYPE, "u2") == 0x0800) & (heads[:, layout.IP] == 0x45)
    envelope &= (be(layout.IP_FRAGMENT, "u2") & 0x3FFF == 0) & (heads[:, layout.IP_PROTOCOL] == 17)
    envelope &= be(layout.UDP_DPORT, "u2") == layout.ROCE_PORT
    total = be(layout.IP_TOTAL_LENGTH, "u2").astype(np.int64)
    envelope &= (be(layout.UDP_LENGTH, "u2") == total - layout.IP_LEN) & (packets.length >= total + layout.ETH_LEN)
    opcode = heads[:, layout.BTH]
    flags = heads[:, layout.BTH_FLAGS]
    header = _HEADER[opcode]
    payload = total + layout.ETH_LEN - header - (flags >> 4 & 3) - layout.ICRC_LEN
    whole = packets.captured >= np.maximum(header, layout.EXTENDED)
    rows = envelope & whole & (header > 0) & (flags & 0xF == 0) & (payload >= 0)
    found = np.zeros(int(np.count_nonzero(rows)), FRAME)
    word, reth = be(layout.UD_IMM, "u4"), _RETH[opcode]
    columns = {
        "time_ns": packets.time_ns,
        "va": np.where(reth, be(layout.EXTENDED, "u8"), 0),
        "bytes": np.where(reth, be(layout.EXTENDED + 12, "u4"), 0),
        "psn": be(layout.BTH_ACKREQ, "u4") & 0xFFFFFF,
        "qpn": be(layout.BTH_RESV8A, "u4") & 0xFFFFFF,
        "word": np.where(reth | (opcode == UD), word, 0),
        "size": packets.length,
        "payload": payload,
        "src": _host(be(6, "u4"), be(10, "u2")),
        "dst": _host(be(0, "u4"), be(4, "u2")),
        "tree": _tree(opcode, be(layout.IP_DST, "u4")),
        "point": packets.interface,
        "direction": packets.direction,
        "opcode": opcode,
        "syndrome": np.where(_AETH[opcode], heads[:, layout.EXTENDED], 0),
    }
    for name, column in columns.items():
        found[name] = column[rows]
    return Decoded(found, rows, envelope & ~whole)


def _host(prefix: npt.NDArray[Any], number: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    return np.where((prefix == _MAC) & (number > 0), number.astype(np.int32) - 1, -1).astype(np.int32)


def _tree(opcode: npt.NDArray[Any], address: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    tree = address.astype(np.int64) - FIRST_GROUP
    return np.where((opcode == UD) & (tree >= 0) & (tree < _GROUPS), tree, -1)
