"""Frames to packet values: multicast chunks and RDMA WRITEs by whole columns, everything else packet by packet.

Nearly all frames of a batch are full chunks, whose headers differ from one another in a few known places only. One
comparison of the batch with a template finds them; what differs is read as columns, and their ICRCs are checked over
the ring itself, with the fields that it does not cover overwritten in place. Whatever a frame holds, nothing raises: it
is counted under the name of the first check that it fails, addresses and queue pairs after the ICRC, so that a damaged
frame is a damaged frame and not a stranger.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from endpoints.core import layout
from endpoints.core.communicator import MULTICAST_QPN, Communicator
from endpoints.core.packets import I32, U8, U32, U64, WRITE_OPCODES, Batch, Chunks, Opcode, RcPacket
from endpoints.wire.icrc import COVERED, HEADER_MASK, RESIDUE, crc32
from endpoints.wire.packet_reader import PacketReader
from endpoints.wire.write_reader import WriteReader

Bool = npt.NDArray[np.bool_]
Integers = npt.NDArray[Any]

_WORDS = slice(COVERED, layout.UD_IMM)
"""The seven 8-byte words, type field included, that hold all of a chunk's header up to the immediate."""

_FEW = 3
"""Batches up to this are read frame by frame, which costs less than the columns do."""

_EACH = np.ones(_FEW, np.bool_)

_USUAL = 256
"""Batches up to this find their constant column made already."""

_PAIR = slice(layout.IP_SRC, layout.IP_SRC + 8)

_VARYING = (
    (COVERED, layout.ETHERTYPE),  # source MAC
    (layout.IP_TOS, layout.IP_TOTAL_LENGTH),
    (layout.IP_TOTAL_LENGTH + 2, layout.IP_FRAGMENT),  # identification
    (layout.IP_TTL, layout.IP_PROTOCOL),
    (layout.IP_CHECKSUM, layout.UDP_DPORT),  # checksum, both addresses, source port
    (layout.UDP_CHECKSUM, layout.BTH),
    (layout.BTH_RESV8A, layout.BTH_QPN),
    (layout.BTH_PSN, layout.EXTENDED),
)
"""Where the headers of full chunks may differ, as (start, stop)."""


@dataclass(slots=True)
class _Columns:
    """Columns of shape (n,) over a batch's rows; they hold a chunk where ``keep`` (None: everywhere), else nothing."""

    keep: Bool | None
    src: I32
    psn_word: U32
    imm: U32
    length: I32

    @classmethod
    def of_nothing(cls, n: int) -> _Columns:
        zeros = np.zeros(n, np.uint32)
        return cls(np.zeros(n, np.bool_), zeros.astype(np.int32), zeros.copy(), zeros.copy(), zeros.astype(np.int32))

    def put(self, at: Integers, other: _Columns) -> None:
        assert self.keep is not None
        self.keep[at] = True if other.keep is None else other.keep
        self.src[at] = other.src
        self.psn_word[at] = other.psn_word
        self.imm[at] = other.imm
        self.length[at] = other.length


class Decoder:
    """Reads the frames that reach one rank."""

    def __init__(self, comm: Communicator, rank: int, templates: Mapping[Opcode, bytes]) -> None:
        self._mtu = comm.mtu
        self._stride = layout.max_frame_length(comm.mtu)
        self._full = layout.UD_PAYLOAD + comm.mtu + layout.ICRC_LEN
        self._template, self._fixed = _chunk_words(templates[Opcode.UD_SEND_ONLY_IMM], self._full, comm.ud_qpn)
        self._known = _known_pairs(comm, rank)
        self._full_length = np.full(_USUAL, self._mtu, np.int32)
        self._packets = PacketReader(comm, rank)
        self._writes = WriteReader(comm, rank, templates)

    def decode(self, frames: U8, lengths: Integers) -> Batch:
        """Take apart ``frames`` of shape (n, stride), each row of which begins with a frame of ``lengths`` bytes.

        The rows are altered, and the result's payloads are views into them. ValueError if the stride cannot hold the
        communicator's longest frame.
        """
        if frames.shape[1] < self._stride:
            raise ValueError(f"rows of {frames.shape[1]} bytes: an MTU of {self._mtu} needs {self._stride}")
        batch = Batch()
        if not len(lengths):
            return batch
        if len(lengths) <= _FEW:
            batch.chunks = self._select(frames, self._read_mixed(frames, lengths, _EACH[: len(lengths)], batch))
            return batch
        words = frames[:, _WORDS].view(np.uint64)
        odd = (words ^ self._template) & self._fixed
        full = lengths == self._full
        if np.count_nonzero(odd) or np.count_nonzero(full) < len(full):
            columns = self._read_mixed(frames, lengths, odd.any(axis=1) | ~full, batch)
        else:
            columns = self._read_full(frames, batch)
        batch.chunks = self._select(frames, columns)
        return batch

    def _read_full(self, frames: U8, batch: Batch, rows: Integers | None = None) -> _Columns:
        """Frames that agree with the template of a full chunk: all, or those in ``rows``, as columns of as many."""
        words = frames[:, _WORDS].view(np.uint64)
        pairs = frames[:, _PAIR].view(np.uint64)[:, 0]
        word = frames[:, layout.BTH_ACKREQ : layout.BTH_ACKREQ + 4].view(">u4")[:, 0]
        imm = frames[:, layout.UD_IMM : layout.UD_IMM + 4].view(">u4")[:, 0]
        covered = frames[:, COVERED : self._full]
        if rows is None:
            np.bitwise_or(words, _ONES, out=words)
            crcs = [crc32(row) for row in covered]
        else:
            words[rows] |= _ONES
            crcs = [crc32(covered[i]) for i in rows.tolist()]
            pairs, word, imm = pairs[rows], word[rows], imm[rows]
        n = len(crcs)
        known = self._known
        src = [known.get(pair, -1) for pair in pairs.tolist()]
        keep = None
        if crcs.count(RESIDUE) < n or -1 in src:
            intact = np.array(crcs, np.uint32) == RESIDUE
            keep = intact & (np.array(src) >= 0)
            self._count_refused(pairs, intact, keep, batch)
        length = self._full_length[:n] if n <= _USUAL else np.full(n, self._mtu, np.int32)
        return _Columns(keep, np.array(src, np.int32), word, imm.astype(np.uint32), length)

    def _count_refused(self, pairs: U64, intact: Bool, keep: Bool, batch: Batch) -> None:
        for i in np.flatnonzero(~keep).tolist():
            src, dst = struct.unpack("!II", pairs[i].tobytes())
            reason = self._packets.stranger(src, dst, multicast=True) if intact[i] else "bad_icrc"
            count(batch, reason or "unknown_qp")

    def _read_mixed(self, frames: U8, lengths: Integers, odd: Bool, batch: Batch) -> _Columns:
        """Full chunks by columns, the other rows (those in ``odd``) one by one."""
        columns = _Columns.of_nothing(len(lengths))
        rest = np.flatnonzero(odd)
        if len(rest) < len(lengths):
            rows = np.flatnonzero(~odd)
            columns.put(rows, self._read_full(frames, batch, rows))
        writes = self._writes.full(frames, lengths, rest) if len(rest) > _FEW else np.zeros(len(rest), np.bool_)
        for at, (i, known) in enumerate(zip(rest.tolist(), writes.tolist(), strict=True)):
            if not known:
                writes[at] = self._read_one(frames[i], int(lengths[i]), i, columns, batch)
        batch.writes = self._writes.columns(frames, rest[writes]) if writes.any() else None
        return columns

    def _read_one(self, frame: U8, length: int, row: int, columns: _Columns, batch: Batch) -> bool:
        """True for a packet of an RDMA WRITE on a bulk connection, which is left to be read by columns."""
        packet = self._packets.read(frame, length)
        if isinstance(packet, str):
            count(batch, packet)
        elif isinstance(packet, RcPacket):
            if packet.bulk and packet.opcode in WRITE_OPCODES:
                return True
            batch.rc.append(packet)
        else:
            assert columns.keep is not None
            columns.keep[row] = True
            columns.src[row], columns.psn_word[row], columns.imm[row], columns.length[row] = packet
        return False

    def _select(self, frames: U8, columns: _Columns) -> Chunks | None:
        """The rows in ``keep``; only where others lie between them is the payload copied."""
        payload = frames[:, layout.UD_PAYLOAD : layout.UD_PAYLOAD + self._mtu]
        if columns.keep is None:
            return Chunks(columns.src, columns.psn_word, columns.imm, columns.length, payload)
        rows = np.flatnonzero(columns.keep)
        if not len(rows):
            return None
        first, last = int(rows[0]), int(rows[-1]) + 1
        at: slice | npt.NDArray[np.intp] = slice(first, last) if last - first == len(rows) else rows
        return Chunks(columns.src[at], columns.psn_word[at], columns.imm[at], columns.length[at], payload[at])


def count(batch: Batch, reason: str) -> None:
    """Count one frame of ``batch`` as rejected for ``reason``."""
    batch.rejected[reason] = batch.rejected.get(reason, 0) + 1


def _icrc_words() -> U64:
    ones = np.zeros(_WORDS.stop - COVERED, np.uint8)
    ones[: layout.EXTENDED - COVERED] = HEADER_MASK[COVERED:]
    return ones.view(np.uint64)


_ONES = _icrc_words()


def _chunk_words(template: bytes, size: int, qpn: int) -> tuple[U64, U64]:
    """The words of a full chunk's header, ``size`` bytes long as a frame, and ones where every chunk has the same.

    ``qpn`` is the queue pair from which they come.
    """
    frame = bytearray(template)
    frame[layout.UD_SRC_QPN : layout.UD_IMM] = qpn.to_bytes(3, "big")
    struct.pack_into("!H", frame, layout.IP_TOTAL_LENGTH, size - layout.ETH_LEN)
    struct.pack_into("!H", frame, layout.UDP_LENGTH, size - layout.ETH_LEN - layout.IP_LEN)
    frame[layout.BTH_QPN : layout.BTH_QPN + 3] = MULTICAST_QPN.to_bytes(3, "big")
    fixed = np.full(len(frame), 0xFF, np.uint8)
    for start, stop in _VARYING:
        fixed[start:stop] = 0
    return np.frombuffer(bytes(frame), np.uint8)[_WORDS].view(np.uint64), fixed[_WORDS].view(np.uint64)


def _known_pairs(comm: Communicator, rank: int) -> dict[int, int]:
    """The sending rank for each (source, group) that chunks may come with, as 8 bytes of the wire."""
    return {
        int(np.frombuffer(struct.pack("!II", peer.ip, group.ip), np.uint64)[0]): peer.rank
        for peer in comm.peers
        for group in comm.groups
        if peer.rank != rank
    }
