"""Classic BPF as values (kernel: Documentation/networking/filter.rst): instructions, labels, the text that tc takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MOST_INSTRUCTIONS = 4096


class Instruction(NamedTuple):
    """One instruction: code, jumps if true and if false (instructions to skip), operand of 32 bits."""

    code: int
    jt: int
    jf: int
    k: int


@dataclass(frozen=True, slots=True)
class Program:
    """A program. It returns 0 for the frames that it passes by, and 2^32 - 1 or a class id for those it chooses."""

    instructions: tuple[Instruction, ...]

    @property
    def bytecode(self) -> str:
        """As ``tc filter ... bpf bytecode`` takes it."""
        return ",".join([str(len(self.instructions)), *(" ".join(map(str, i)) for i in self.instructions)])
