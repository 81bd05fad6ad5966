"""An interpreter of classic BPF, for tests: one frame, one program, one result (kernel: net/core/filter.c)."""

from __future__ import annotations

from collections.abc import Callable

from topo.impairments.bpf import CODES, RANDOM, WORD, Program

NAMES = {code: name for name, code in CODES.items()} | {0x48: "ldhx", 0x50: "ldbx", 0xB1: "msh"}
SIZES = {"ld": 4, "ldh": 2, "ldb": 1, "ldhx": 2, "ldbx": 1}


def run(program: Program, frame: bytes, dice: Callable[[], int] = lambda: 0) -> int:  # noqa: C901  # a case for each instruction
    """What ``program`` returns for ``frame``; ``dice`` gives the kernel's random numbers."""
    a = x = 0
    memory = [0] * 16
    at = 0
    while True:
        code, jt, jf, k = program.instructions[at]
        name = NAMES[code]
        at += 1
        match name:
            case "ld" if k == RANDOM:
                a = dice()
            case "ld" | "ldh" | "ldb":
                if k + SIZES[name] > len(frame):
                    return 0
                a = int.from_bytes(frame[k : k + SIZES[name]], "big")
            case "ldhx" | "ldbx":
                if x + k + SIZES[name] > len(frame):
                    return 0
                a = int.from_bytes(frame[x + k : x + k + SIZES[name]], "big")
            case "msh":
                x = 4 * (frame[k] & 0xF)
            case "imm":
                a = k
            case "len":
                a = len(frame)
            case "mem":
                a = memory[k]
            case "memx":
                x = memory[k]
            case "st":
                memory[k] = a
            case "tax":
                x = a
            case "add":
                a = a + k & WORD
            case "mul":
                a = a * k & WORD
            case "and":
                a &= k
            case "rsh":
                a >>= k
            case "mod":
                a %= k
            case "xorx":
                a ^= x
            case "ja":
                at += k
            case "jeq":
                at += jt if a == k else jf
            case "jgt":
                at += jt if a > k else jf
            case "jge":
                at += jt if a >= k else jf
            case "jset":
                at += jt if a & k else jf
            case "ret":
                return k
            case "reta":
                return a
