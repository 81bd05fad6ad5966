"""Reliable connections: what each host sent to each other one, by kind, and how much of it again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from endpoints.core.packets import Opcode
from endpoints.core.serial import PSN_BITS
from experiments.analysis.frames import UD, Frames
from experiments.analysis.reads import vantage
from experiments.analysis.trace import Trace, groups

KINDS = {
    "send": (Opcode.RC_SEND_FIRST, Opcode.RC_SEND_ONLY_IMM),
    "write": (Opcode.RC_WRITE_FIRST, Opcode.RC_WRITE_ONLY_IMM),
    "read": (Opcode.RC_READ_REQUEST, Opcode.RC_READ_REQUEST),
    "answer": (Opcode.RC_READ_RESPONSE_FIRST, Opcode.RC_READ_RESPONSE_ONLY),
    "ack": (Opcode.RC_ACKNOWLEDGE, Opcode.RC_ACKNOWLEDGE),
}
"""Kinds of packets, as the first and last of their opcodes."""
_NAK = 0x60
"""Two bits of the syndrome that are set in a NAK (IBTA vol. 1, table 44)."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What ``src`` sent to ``dst``: frames and payload bytes by kind, NAKs among the acknowledgements.

    ``repeated`` counts requests (SEND, WRITE, READ) and ``repeated_answers`` answers to READs whose PSN had been sent
    before. Messages that are sent twice on purpose, since packets are being lost, count as well.
    """

    src: int
    dst: int
    point: int
    first_ns: int
    last_ns: int
    size: int
    frames: dict[str, int]
    payload: dict[str, int]
    naks: int
    repeated: int
    repeated_answers: int


def traffic(trace: Trace) -> list[Traffic]:
    """Every pair of hosts of which a frame was captured, as seen nearest to the sender."""
    frames = trace.frames
    unicast = frames[(frames["opcode"] != UD) & (frames["src"] >= 0) & (frames["dst"] >= 0)]
    found = []
    for (src, dst), its in groups(unicast, "src", "dst"):
        at = vantage(its, trace.points, src, dst)
        found.append(_traffic(src, dst, at, its[its["point"] == at]))
    return found


def _traffic(src: int, dst: int, point: int, frames: Frames) -> Traffic:
    opcode = frames["opcode"]
    kinds = {kind: frames[(opcode >= first) & (opcode <= last)] for kind, (first, last) in KINDS.items()}
    return Traffic(
        src=src,
        dst=dst,
        point=point,
        first_ns=int(frames["time_ns"][0]),
        last_ns=int(frames["time_ns"][-1]),
        size=int(frames["size"].sum()),
        frames={kind: len(its) for kind, its in kinds.items()},
        payload={kind: int(its["payload"].sum()) for kind, its in kinds.items()},
        naks=int(np.count_nonzero((kinds["ack"]["syndrome"] & _NAK) == _NAK)),
        repeated=_repeated(frames[opcode <= Opcode.RC_READ_REQUEST]),
        repeated_answers=_repeated(kinds["answer"]),
    )


def _repeated(frames: Frames) -> int:
    """Frames whose PSN, counted without wrapping, their queue pair had sent before."""
    count = 0
    for _, its in groups(frames, "qpn"):
        psns = np.unwrap(its["psn"].astype(np.int64), period=1 << PSN_BITS)
        count += len(psns) - len(np.unique(psns))
    return count
