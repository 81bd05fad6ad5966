"""Who a packet is, whenever and in whatever company it comes, and the numbers that follow from that.

Chance is a hash of the packet's identity and the seed, never the next throw of a generator: so the same seed strikes
the same packets whatever the timing, here and in virtual time alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from endpoints.core import layout
from endpoints.core.packets import U8, U32, Opcode
from endpoints.impairments.fates import U64, Bool

UD, REQUEST, RESPONSE, ACK = range(4)
"""Classes of opcodes whose PSNs are numbered apart. Not the opcode itself, since a READ that is asked for again from
its middle on comes with other opcodes for the same PSNs."""

_KIND: Final = np.full(256, REQUEST, np.uint8)
_KIND[Opcode.UD_SEND_ONLY_IMM] = UD
_KIND[Opcode.RC_READ_RESPONSE_FIRST : Opcode.RC_READ_RESPONSE_ONLY + 1] = RESPONSE
_KIND[Opcode.RC_ACKNOWLEDGE] = ACK

_SMALLEST: Final = layout.EXTENDED + layout.ICRC_LEN

_OFFSETS: Final = (layout.IP_SRC, layout.BTH_RESV8A, layout.BTH_ACKREQ, layout.UD_SRC_QPN - 1, layout.UD_IMM)
_BYTES: Final = np.array([offset + i for offset in _OFFSETS for i in range(4)])
_MASKS: Final = np.array([0xFFFFFFFF, 0xFFFFFF, 0xFFFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)
"""The words of 4 bytes that hold sender, queue pair, PSN, a datagram's own queue pair and immediate, and the bits of
them that count."""
_NONE: Final = np.uint32(0)

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST: Final = np.uint64(31)
_BYTE: Final = np.uint64(8)
_THREE_BYTES: Final = np.uint64(24)


@dataclass(frozen=True, slots=True)
class Identities:
    """Columns of shape (n,): ``sender`` is an IPv4 address, ``imm`` 0 where there is none that counts.

    ``roce`` is false for frames too short to be RoCE, whose other columns mean nothing; ``key`` joins the rest.
    """

    roce: Bool
    sender: U32
    opcode: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    psn: U32
    imm: U32
    key: U64

    @classmethod
    def of(cls, frames: U8, lengths: npt.NDArray[Any]) -> Identities:
        """Read the identities of frames of shape (n, stride)."""
        roce = lengths >= _SMALLEST
        if frames.shape[1] < layout.UD_PAYLOAD:
            wide = np.zeros((len(lengths), layout.UD_PAYLOAD), np.uint8)
            wide[:, : frames.shape[1]] = frames
            frames = wide
        opcode = frames[:, layout.BTH]
        kind = _KIND[opcode]
        sender, qpn, psn, source, imm = (frames.take(_BYTES, axis=1).view(">u4").astype(np.uint32) & _MASKS).T
        imm = np.where(kind == UD, imm, _NONE)
        qpn = np.where(kind == UD, source, qpn)  # all multicast datagrams go to the same one
        return cls(roce, sender, opcode, kind, psn, imm, _join(sender, kind, qpn, psn, imm))


def salt(seed: int, host: int, direction: str, kind: str, ordinal: int) -> int:
    """What sets the chances of one impairment at one place apart from all others, 64 bits.

    ``ordinal`` counts the impairments of the same ``kind`` at the same place.
    """
    values = (seed, host, crc32(direction.encode()), crc32(kind.encode()), ordinal)
    state = np.zeros(1, np.uint64)
    for value in values:
        state = mix(state ^ np.uint64(value & 0xFFFFFFFFFFFFFFFF))
    return int(state[0])


def mix(state: U64) -> U64:
    """The next number of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    state = state + _GAMMA
    for shift, factor in _ROUNDS:
        state ^= state >> shift
        state *= factor
    state ^= state >> _LAST
    return state


def _join(sender: U32, kind: npt.NDArray[np.uint8], qpn: U32, psn: U32, imm: U32) -> U64:
    first = sender.astype(np.uint64) << _BYTE | kind
    second = qpn.astype(np.uint64) << _THREE_BYTES | psn
    return mix(mix(mix(first) ^ second) ^ imm)
