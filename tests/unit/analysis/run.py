"""A run that never was: frames of four hosts on a leaf-spine, captured where and as a test wants them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from endpoints.core.packets import Aeth, Opcode, RcPacket, Reth, UdBurst
from endpoints.io import pcapng
from endpoints.wire.codec import Codec
from endpoints.wire.templates import build_templates
from experiments.communicators import communicator
from experiments.results import PlatformInfo, Summary
from experiments.scenario import Scenario

MTU, CHUNKS = 256, 10
"""The last chunk of each block is a single byte."""
SIZE = (CHUNKS - 1) * MTU + 1
SCENARIO = Scenario.of({"topology": "leafspine,leaves=2,spines=2,hosts=2", "mtu": MTU, "size_bytes": SIZE, "trees": 2})
COMM = communicator(SCENARIO.fabric, mtu=MTU, rate_bps=SCENARIO.link_rate_bps, trees=2)
CODECS = [Codec(COMM, rank, build_templates()) for rank in range(4)]
MS = 1_000_000
BEGIN = 1_700_000_000 * 10**9


def chunk(root: int, index: int, op: int = 1) -> bytes:
    """The frame of chunk ``index`` of a root's block."""
    number = root * CHUNKS + index
    imm = np.array([(op << 24 & 0xFFFFFFFF) | number], np.uint32)
    payload = np.full(MTU if index < CHUNKS - 1 else 1, number, np.uint8)
    (frame,) = CODECS[root].encode(UdBurst(index % 2, np.array([number], np.uint32), imm, [payload]))
    return bytes(frame)


def packet(src: int, dst: int, opcode: Opcode, psn: int, **fields: object) -> bytes:
    """A frame of a reliable connection."""
    return bytes(CODECS[src].encode_rc(RcPacket(opcode, dst, psn & 0xFFFFFF, **fields)))  # type: ignore[arg-type]


def read(requester: int, supplier: int, first: int, count: int, psn: int, op: int = 1) -> list[bytes]:
    """The request for ``count`` chunks from number ``first`` on, and its answers."""
    block, index = divmod(first, CHUNKS)
    lengths = [MTU if number % CHUNKS < CHUNKS - 1 else 1 for number in range(first, first + count)]
    reth = Reth(block * SIZE + index * MTU, op, sum(lengths))
    kinds = [Opcode.RC_READ_RESPONSE_ONLY]
    if count > 1:
        middle = [Opcode.RC_READ_RESPONSE_MIDDLE] * (count - 2)
        kinds = [Opcode.RC_READ_RESPONSE_FIRST, *middle, Opcode.RC_READ_RESPONSE_LAST]
    answers = [
        packet(
            supplier,
            requester,
            kind,
            psn + at,
            aeth=None if kind is Opcode.RC_READ_RESPONSE_MIDDLE else Aeth(0x1F, 0),
            payload=bytes(length),
        )
        for at, (kind, length) in enumerate(zip(kinds, lengths, strict=True))
    ]
    return [packet(requester, supplier, Opcode.RC_READ_REQUEST, psn, ack_request=True, reth=reth), *answers]


class Folder:
    """The folder of a run's results."""

    def __init__(self, path: Path, *, summary: bool = True) -> None:
        self.path = path
        (path / "captures").mkdir()
        if summary:
            info = PlatformInfo(kernel="6.1.0", datapath="user")
            (path / "summary.json").write_text(Summary(scenario=SCENARIO, platform=info, runs=[]).to_json())

    def capture(self, name: str, interface: str, frames: Iterable[tuple[int, bytes]]) -> Path:
        """Write frames with their times in ms since the beginning; what ``interface``'s host sent goes out of it."""
        file = self.path / "captures" / f"{name}.pcapng"
        host = int(interface[1:].partition("-")[0]) if interface.startswith("h") else 0
        data = pcapng.section("test") + pcapng.interface(interface, 9216)
        for time, frame in frames:
            way = pcapng.OUTBOUND if frame[11] == host else pcapng.INBOUND
            data += pcapng.packet(BEGIN + time * MS, frame, len(frame), way)
        file.write_bytes(data)
        return file
