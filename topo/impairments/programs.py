"""Which frames are chosen: the programs behind the impairments.

**Chance** is keyed on identity where a frame has one of its own: a multicast chunk is chosen by a hash of salt, sender,
queue pair, PSN and immediate, so that the same seed chooses the same chunks, whatever the timing. Packets of reliable
connections are repeated under the same PSN, and would be lost for ever; they, and whatever is no RoCE, are chosen by a
random number of the kernel's.
"""

from __future__ import annotations

from typing import Final

from topo.impairments import roce
from topo.impairments.bpf import RANDOM, WORD, Label, Op, Program, Source, assemble
from topo.impairments.model import Range

_END: Final[Source] = (Label("hit"), Op("ret", WORD), Label("miss"), Op("ret", 0))

ALL: Final = assemble([Op("ret", WORD)])
"""Every frame."""

_CHUNK: Final = (
    (roce.IP_SOURCE, WORD),
    (roce.SOURCE_QUEUE_PAIR, roce.LAST_24_BITS),
    (roce.SEQUENCE, roce.LAST_24_BITS),
    (roce.IMMEDIATE, WORD),
)


def chance(share: float, salt: int) -> Program:
    """Each frame with probability ``share``, whatever becomes of the others."""
    bound = round(share * 2**32)
    if bound > WORD:
        return ALL
    return assemble(
        [
            *roce.unless_roce("dice"),
            Op("ldb", roce.OPCODE),
            Op("jeq", roce.UD_SEND_ONLY_IMM, false="dice"),
            *roce.hashed(_CHUNK, salt),
            Op("jge", bound, "miss", "hit"),
            Label("dice"),
            Op("ld", RANDOM),
            Op("jge", bound, "miss", "hit"),
            *_END,
        ]
    )


def exact(psn: tuple[Range, ...], every: int | None, opcode: tuple[Range, ...]) -> Program:
    """RoCE frames of these opcodes, and of these PSNs, and whose PSN is the last of each ``every``."""
    lines: list[Op | Label] = [
        *roce.unless_roce("other"),
        Op("ja", true="roce"),
        Label("other"),  # near, since conditional jumps reach 255 instructions
        Op("ret", 0),
        Label("roce"),
        Op("ldb", roce.OPCODE),
        *_within(opcode, "opcode"),
    ]
    lines += [Op("ld", roce.SEQUENCE), Op("and", roce.LAST_24_BITS)]
    if psn:
        lines += _within(psn, "psn")
    if every:
        lines += [Op("mod", every), Op("jeq", every - 1, false="miss")]
    return assemble([*lines, *_END])


def spread(classes: int, salt: int) -> Program:
    """One of HTB's classes 1:1 to 1:``classes`` (a power of 2) for each frame, the same for its copies."""
    words = ((roce.IP_SOURCE, WORD), (roce.QUEUE_PAIR, WORD), (roce.SEQUENCE, WORD))
    return assemble([*roce.hashed(words, salt), Op("and", classes - 1), Op("add", 0x10001), Op("reta")])


def _within(allowed: tuple[Range, ...], what: str) -> Source:
    """Goes on if A is in one of the ranges, jumps to ``miss`` if it is in none."""
    lines: list[Op | Label] = []
    for number, (first, last) in enumerate(allowed):
        after = f"{what}{number}"
        lines += [Op("jge", first, false=after), Op("jgt", last, true=after), Op("ja", true=what), Label(after)]
    return (*lines, Op("ja", true="miss"), Label(what))
