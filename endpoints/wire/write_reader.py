"""Packets of RDMA WRITEs by whole columns, like multicast chunks: full ones are checked together and none is copied."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from endpoints.core import layout
from endpoints.core.communicator import Communicator
from endpoints.core.packets import U8, U32, WRITE_OPCODES, Opcode, Writes
from endpoints.wire.icrc import COVERED, HEADER_MASK, RESIDUE, crc32

Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Integers = npt.NDArray[Any]

_HEAD = slice(COVERED, layout.EXTENDED)
"""The six 8-byte words up to the end of BTH, type field included."""

_VARYING = (
    (COVERED, layout.ETHERTYPE),  # source MAC
    (layout.IP_TOS, layout.IP_FRAGMENT),  # lengths are compared on their own
    (layout.IP_TTL, layout.IP_PROTOCOL),
    (layout.IP_CHECKSUM, layout.UDP_DPORT),  # checksum, both addresses, source port
    (layout.UDP_LENGTH, layout.BTH_FLAGS),  # length, checksum, opcode
    (layout.BTH_RESV8A, layout.EXTENDED),
)
"""Where the headers of full packets may differ, as (start, stop)."""

_START = np.zeros(256, np.int32)
"""Bytes before the payload, by opcode; 0 for what is no WRITE."""
for _opcode in WRITE_OPCODES:
    _START[_opcode] = layout.header_length(Opcode(_opcode))

_RETH = layout.EXTENDED
_IMM_AFTER_RETH = _RETH + layout.RETH_LEN


class WriteReader:
    """Reads the WRITEs that reach one rank."""

    def __init__(self, comm: Communicator, rank: int, templates: Mapping[Opcode, bytes]) -> None:
        self._full = np.where(_START > 0, _START + comm.mtu + layout.ICRC_LEN, -1)
        fixed = np.full(layout.EXTENDED, 0xFF, np.uint8)
        for start, stop in _VARYING:
            fixed[start:stop] = 0
        template = np.frombuffer(templates[Opcode.RC_WRITE_MIDDLE], np.uint8)[_HEAD].copy()
        self._template, self._fixed = template.view(np.uint64), fixed[_HEAD].copy().view(np.uint64)
        self._qpn = comm.bulk_qpn
        self._ones = HEADER_MASK[_HEAD].copy().view(np.uint64)
        own = comm.peers[rank].ip
        self._known = {
            int(np.frombuffer(struct.pack("!II", peer.ip, own), np.uint64)[0]): peer.rank
            for peer in comm.peers
            if peer.rank != rank
        }

    def full(self, frames: U8, lengths: Integers, at: Rows) -> Bool:
        """Which of the rows ``at`` hold a full packet of a WRITE to this rank in which nothing is wrong."""
        heads = frames[at, _HEAD]
        words = heads.view(np.uint64)
        size = self._full[heads[:, layout.BTH - COVERED]]
        good = (lengths[at] == size) & ~((words ^ self._template) & self._fixed).any(axis=1)
        good &= _u16(heads, layout.IP_TOTAL_LENGTH - COVERED) == size - layout.ETH_LEN
        good &= _u16(heads, layout.UDP_LENGTH - COVERED) == size - layout.ETH_LEN - layout.IP_LEN
        qpn = _u32(heads, layout.BTH_RESV8A - COVERED) & 0xFFFFFF
        good &= qpn == self._sources(frames, at) + self._qpn
        words |= self._ones
        where = np.flatnonzero(good)
        # Python's own integers and a plain loop: the CRC of 4 KiB costs less than an array operation.
        for i, row, stop in zip(where.tolist(), at[where].tolist(), size[where].tolist(), strict=True):
            good[i] = crc32(frames[row, layout.EXTENDED : stop], crc32(heads[i])) == RESIDUE
        return good

    def _sources(self, frames: U8, at: Rows) -> npt.NDArray[np.int32]:
        """The sending ranks, a number that no connection has for strangers."""
        pairs = frames[at, layout.IP_SRC : layout.IP_SRC + 8].view(np.uint64)[:, 0].tolist()
        return np.array([self._known.get(pair, -self._qpn) for pair in pairs], np.int32)

    def columns(self, frames: U8, at: Rows) -> Writes:
        """What the rows ``at`` hold, all of them packets of WRITEs that have been checked."""
        heads = frames[at, : layout.MAX_HEADER_LENGTH]
        opcode = heads[:, layout.BTH]
        start = _START[opcode]
        end = _u16(heads, layout.IP_TOTAL_LENGTH) + (layout.ETH_LEN - layout.ICRC_LEN)
        pad = heads[:, layout.BTH_FLAGS] >> 4 & 3
        word = _u32(heads, layout.BTH_ACKREQ)
        with_reth = start >= _IMM_AFTER_RETH
        return Writes(
            src=self._sources(frames, at),
            opcode=opcode,
            psn=(word & 0xFFFFFF).astype(np.uint32),
            ack_request=word >> 31 != 0,
            va=heads[:, _RETH : _RETH + 8].view(">u8")[:, 0].astype(np.uint64),
            rkey=_u32(heads, _RETH + 8).astype(np.uint32),
            size=_u32(heads, _RETH + 12).astype(np.uint32),
            imm=np.where(with_reth, _u32(heads, _IMM_AFTER_RETH), _u32(heads, _RETH)).astype(np.uint32),
            row=at.astype(np.int32),
            start=start,
            length=(end - pad - start).astype(np.int32),
            rows=frames,
        )


def _u16(rows: U8, offset: int) -> npt.NDArray[np.int32]:
    return rows[:, offset : offset + 2].view(">u2")[:, 0].astype(np.int32)


def _u32(rows: U8, offset: int) -> U32:
    return rows[:, offset : offset + 4].view(">u4")[:, 0]
