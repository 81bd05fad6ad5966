"""Where BPF finds what tells RoCEv2 frames apart, in bytes from the Ethernet header (IBTA vol. 1, annex A17)."""

from __future__ import annotations

from typing import Final

from topo.impairments.bpf import Label, Op, Source

SMALLEST: Final = 58
"""Ethernet 14, IPv4 without options 20, UDP 8, BTH 12, ICRC 4."""

IP_SOURCE: Final = 26
OPCODE: Final = 42
QUEUE_PAIR: Final = 46
"""A word whose last 24 bits are the destination queue pair."""
SEQUENCE: Final = 50
"""A word whose last 24 bits are the PSN."""
SOURCE_QUEUE_PAIR: Final = 58
"""The same of the queue pair that a UD SEND comes from; multicast datagrams all go to the same one."""
IMMEDIATE: Final = 62
"""Of a UD SEND with immediate."""

UD_SEND_ONLY_IMM: Final = 0x65
"""The opcode of multicast chunks, whose immediate and PSN no other of the same queue pair has for a long time."""

LAST_24_BITS: Final = 0xFFFFFF


def unless_roce(other: str) -> Source:
    """Goes on for RoCEv2 frames, jumps to ``other`` for all others."""
    return (
        Op("len"),
        Op("jge", SMALLEST, false=other),
        Op("ldh", 12),
        Op("jeq", 0x0800, false=other),
        Op("ldb", 14),
        Op("jeq", 0x45, false=other),
        Op("ldb", 23),
        Op("jeq", 17, false=other),
        Op("ldh", 20),
        Op("jset", 0x1FFF, true=other),  # a later fragment has no UDP header
        Op("ldh", 36),
        Op("jeq", 4791, false=other),
    )


def hashed(words: tuple[tuple[int, int], ...], salt: int) -> Source:
    """A = 32 bits that follow from ``salt`` and these words of the frame (offset, mask).

    Each word is mixed in by a multiplication and a shift, and the end is the finalizer of MurmurHash3 (A. Appleby,
    2011), whose every output bit changes with half of the input bits: neighbours in PSN share nothing.
    """
    lines: list[Op | Label] = [Op("imm", salt), Op("st", 0)]
    for offset, mask in words:
        lines += [Op("ld", offset), Op("and", mask), Op("memx", 0), Op("xorx"), *_stir(0xCC9E2D51, 15), Op("st", 0)]
    return (*lines, *_stir(0x85EBCA6B, 13), *_stir(0xC2B2AE35, 16))


def _stir(factor: int, shift: int) -> Source:
    """A = A * factor; A = A xor (A >> shift)."""
    return (Op("mul", factor), Op("tax"), Op("rsh", shift), Op("xorx"))
