"""What crosses the border between the protocol and the wire: packets as values, multicast chunks as columns.

The protocol never sees bytes of headers. ``wire.codec`` turns frames into a :class:`Batch` and back; chunks, of which
there are many, travel as numpy columns; packets of the reliable connections, of which there are few, as values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
I32 = npt.NDArray[np.int32]


class Opcode(IntEnum):
    """BTH opcodes in use (IBTA vol. 1, table 38)."""

    RC_SEND_FIRST = 0x00
    RC_SEND_MIDDLE = 0x01
    RC_SEND_LAST = 0x02
    RC_SEND_LAST_IMM = 0x03
    RC_SEND_ONLY = 0x04
    RC_SEND_ONLY_IMM = 0x05
    RC_WRITE_FIRST = 0x06
    RC_WRITE_MIDDLE = 0x07
    RC_WRITE_LAST = 0x08
    RC_WRITE_LAST_IMM = 0x09
    RC_WRITE_ONLY = 0x0A
    RC_WRITE_ONLY_IMM = 0x0B
    RC_READ_REQUEST = 0x0C
    RC_READ_RESPONSE_FIRST = 0x0D
    RC_READ_RESPONSE_MIDDLE = 0x0E
    RC_READ_RESPONSE_LAST = 0x0F
    RC_READ_RESPONSE_ONLY = 0x10
    RC_ACKNOWLEDGE = 0x11
    UD_SEND_ONLY_IMM = 0x65


WRITE_OPCODES = frozenset(range(Opcode.RC_WRITE_FIRST, Opcode.RC_WRITE_ONLY_IMM + 1))


class Reth(NamedTuple):
    """RDMA extended transport header (IBTA vol. 1, 9.3.4): virtual address, remote key, DMA length in bytes."""

    va: int
    rkey: int
    length: int


class Aeth(NamedTuple):
    """ACK extended transport header (IBTA vol. 1, 9.3.5): syndrome (8 bits) and message sequence number (24 bits)."""

    syndrome: int
    msn: int


ACK = 0x1F
"""Syndrome of an ACK without credit information (IBTA vol. 1, table 44)."""
NAK_SEQUENCE = 0x60
NAK_REMOTE_ACCESS = 0x62


@dataclass(slots=True)
class RcPacket:
    """A packet of a reliable connection. ``peer`` is the destination rank when sent, the source rank when received.

    ``payload`` is any buffer of at most one MTU; when received it is a view into the packet ring, valid during the
    call that hands it over. Which of ``imm``, ``reth``, ``aeth`` are present follows from the opcode.
    """

    opcode: Opcode
    peer: int
    psn: int
    ack_request: bool = False
    imm: int | None = None
    reth: Reth | None = None
    aeth: Aeth | None = None
    payload: bytes | memoryview | U8 = b""
    bulk: bool = False
    """Whether it belongs to the connection that carries bulk data (WRITEs and their acknowledgements)."""


@dataclass(slots=True)
class WriteBurst:
    """Packets ``first .. stop - 1`` of one RDMA WRITE with immediate to send to rank ``peer``.

    ``psn`` is the first packet's of the message (24 bits), ``payload`` the whole message; the last packet of the burst
    asks for an acknowledgement if ``ack_request``.
    """

    peer: int
    psn: int
    reth: Reth
    imm: int
    payload: U8
    first: int
    stop: int
    ack_request: bool = False


def packets_of(length: int, mtu: int) -> int:
    """Packets of a message of ``length`` bytes (IBTA vol. 1, 9.7.2: at least one, all but the last full)."""
    return max(1, -(-length // mtu))


def write_opcode(index: int, count: int) -> Opcode:
    """Opcode of packet ``index`` of an RDMA WRITE with immediate of ``count`` packets."""
    if count == 1:
        return Opcode.RC_WRITE_ONLY_IMM
    if index == 0:
        return Opcode.RC_WRITE_FIRST
    return Opcode.RC_WRITE_LAST_IMM if index == count - 1 else Opcode.RC_WRITE_MIDDLE


def read_response_opcode(index: int, count: int) -> Opcode:
    """Opcode of packet ``index`` of the response to an RDMA READ of ``count`` packets."""
    if count == 1:
        return Opcode.RC_READ_RESPONSE_ONLY
    if index == 0:
        return Opcode.RC_READ_RESPONSE_FIRST
    return Opcode.RC_READ_RESPONSE_LAST if index == count - 1 else Opcode.RC_READ_RESPONSE_MIDDLE


@dataclass(slots=True)
class UdBurst:
    """Multicast chunks to send: ``n`` frames with consecutive or other PSNs to one tree.

    ``group`` is the tree's index in the communicator; ``psn`` (24 bits) and ``imm`` have shape (n,); ``payloads`` are
    n buffers of at most one MTU each.
    """

    group: int
    psn: U32
    imm: U32
    payloads: list[U8]


@dataclass(slots=True)
class Chunks:
    """Multicast chunks received: columns of shape (n,), and ``payload`` of shape (n, >= mtu) viewing the packet ring.

    ``src`` is the sending rank, ``length`` the payload bytes of each row; bytes beyond it are not payload.
    ``psn_word`` is the BTH's last word, of which the PSN is a part that placement does not need: the immediate alone
    says where a chunk belongs.
    """

    src: I32
    psn_word: U32
    imm: U32
    length: I32
    payload: U8

    @property
    def psn(self) -> U32:
        """Packet sequence numbers, 24 bits."""
        return (self.psn_word & 0xFFFFFF).astype(np.uint32)

    def __len__(self) -> int:
        return len(self.imm)

    def pick(self, which: npt.NDArray[np.bool_]) -> Chunks:
        """Some of them, copied."""
        return Chunks(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


@dataclass(slots=True)
class Writes:
    """Packets of RDMA WRITEs received: columns of shape (n,), in order of arrival.

    ``src`` is the sending rank; ``va``, ``rkey``, ``size`` (RETH) and ``imm`` mean something where the opcode has them.
    The payload of packet ``i`` are ``length[i]`` bytes from ``start[i]`` on of row ``row[i]`` of ``rows``, shape
    (m, stride), which views the packet ring.
    """

    src: I32
    opcode: U8
    psn: U32
    ack_request: npt.NDArray[np.bool_]
    va: U64
    rkey: U32
    size: U32
    imm: U32
    row: I32
    start: I32
    length: I32
    rows: U8

    def __len__(self) -> int:
        return len(self.src)

    def pick(self, which: npt.NDArray[np.bool_] | slice) -> Writes:
        """Some of them, as views of the same rows."""
        return Writes(**self._columns(which), rows=self.rows)

    def _columns(self, which: npt.NDArray[np.bool_] | slice) -> dict[str, Any]:
        return {field.name: getattr(self, field.name)[which] for field in fields(self) if field.name != "rows"}

    def copy(self, first: int, stop: int) -> Writes:
        """Packets ``first .. stop - 1``, with rows of their own that outlive the ring's."""
        columns = {name: column.copy() for name, column in self._columns(slice(first, stop)).items()}
        rows = self.rows[columns["row"]]
        columns["row"] = np.arange(stop - first, dtype=np.int32)
        return Writes(**columns, rows=rows)

    def payloads(self, first: int, stop: int) -> U8:
        """Payloads of packets ``first .. stop - 1``, which must be equal in length and in opcode, as rows."""
        begin, end = int(self.start[first]), int(self.start[first] + self.length[first])
        at, last = int(self.row[first]), int(self.row[stop - 1])
        if last - at == stop - 1 - first:
            return self.rows[at : last + 1, begin:end]
        return self.rows[self.row[first:stop], begin:end]


@dataclass(slots=True)
class Batch:
    """What a batch of frames held, in order of arrival within each of both kinds; views are valid during one call.

    ``rejected`` counts frames that were dropped, by the first check that failed: ``truncated``, ``not_roce``,
    ``bad_length`` (headers that contradict each other), ``bad_icrc``, ``unknown_opcode``, ``own`` (sent by this rank),
    ``unknown_peer``, ``wrong_destination`` (not this rank's address, nor one of its trees), ``unknown_qp`` (P_Key and
    Q_Key included).
    """

    chunks: Chunks | None = None
    writes: Writes | None = None
    rc: list[RcPacket] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=dict)


Outgoing = UdBurst | WriteBurst | RcPacket
