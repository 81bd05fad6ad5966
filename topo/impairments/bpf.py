"""Classic BPF as values (kernel: Documentation/networking/filter.rst): mnemonics, labels, and the text for tc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

MOST_INSTRUCTIONS: Final = 4096
WORD: Final = 0xFFFFFFFF

CODES: Final = {
    "ld": 0x20,  # A = 4 bytes of the frame at k, most significant first
    "ldh": 0x28,
    "ldb": 0x30,
    "imm": 0x00,  # A = k
    "len": 0x80,  # A = length of the frame
    "mem": 0x60,  # A = M[k]
    "memx": 0x61,  # X = M[k]
    "st": 0x02,  # M[k] = A
    "tax": 0x07,  # X = A
    "add": 0x04,
    "mul": 0x24,
    "and": 0x54,
    "rsh": 0x74,
    "mod": 0x94,
    "xorx": 0xAC,  # A = A xor X
    "ja": 0x05,
    "jeq": 0x15,
    "jgt": 0x25,
    "jge": 0x35,
    "jset": 0x45,
    "ret": 0x06,
    "reta": 0x16,
}
JUMPS: Final = frozenset({"jeq", "jgt", "jge", "jset"})

RANDOM: Final = 0xFFFFF000 + 56
"""Offset at which ``ld`` finds a new random number of the kernel's (SKF_AD_OFF + SKF_AD_RANDOM)."""


class Instruction(NamedTuple):
    """One instruction: code, jumps if true and if false (instructions to skip), operand of 32 bits."""

    code: int
    jt: int = 0
    jf: int = 0
    k: int = 0


class Op(NamedTuple):
    """One instruction before assembly: a jump names labels, ``""`` is the next instruction."""

    name: str
    k: int = 0
    true: str = ""
    false: str = ""


class Label(NamedTuple):
    """A place to jump to."""

    name: str


Source = Sequence[Op | Label]


@dataclass(frozen=True, slots=True)
class Program:
    """A program. It returns 0 for the frames that it passes by, and 2^32 - 1 or a class id for those it chooses.

    A frame that ends before a byte that is looked at counts as passed by.
    """

    instructions: tuple[Instruction, ...]

    @property
    def bytecode(self) -> str:
        """As ``tc filter ... bpf bytecode`` takes it."""
        return ",".join([str(len(self.instructions)), *(" ".join(map(str, i)) for i in self.instructions)])


def assemble(source: Source) -> Program:
    """The program; ValueError for a jump that is too far, or back, and for too many instructions."""
    places: dict[str, int] = {}
    ops: list[Op] = []
    for line in source:
        if isinstance(line, Label):
            places[line.name] = len(ops)
        else:
            ops.append(line)
    if len(ops) > MOST_INSTRUCTIONS:
        raise ValueError(f"{len(ops)} instructions, {MOST_INSTRUCTIONS} at most")

    def skip(here: int, label: str, most: int) -> int:
        distance = places[label] - here - 1 if label else 0
        if not 0 <= distance <= most:
            raise ValueError(f"jump over {distance} instructions to {label}")
        return distance

    return Program(
        tuple(
            Instruction(CODES[op.name], 0, 0, skip(here, op.true, WORD))
            if op.name == "ja"
            else Instruction(CODES[op.name], skip(here, op.true, 255), skip(here, op.false, 255), op.k)
            for here, op in enumerate(ops)
        )
    )
