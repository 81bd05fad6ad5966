"""What tests of bulk connections share: times, and WRITEs that have crossed a link without a wire format between."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from endpoints.core.communicator import Communicator
from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.packets import U8, Reth, WriteBurst, Writes, packets_of, write_opcode
from endpoints.core.serial import PSN_MASK
from experiments.communicators import communicator
from topo.registry import parse_topology

MTU = 256
RKEY = 7


def a_communicator() -> Communicator:
    return communicator(parse_topology("single,hosts=2"), mtu=MTU, rate_bps=50_000_000)


def a_timing() -> Timing:
    return Timing.of(a_communicator(), ProtocolConfig())


def some_bytes(count: int, seed: int = 1) -> U8:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


def a_burst(payload: U8, first_psn: int, *, va: int = 0, imm: int = 0, ask: bool = False) -> WriteBurst:
    """A whole message that begins with ``first_psn``."""
    reth = Reth(va, RKEY, len(payload))
    return WriteBurst(1, first_psn & PSN_MASK, reth, imm, payload, 0, packets_of(len(payload), MTU), ask)


def packets(burst: WriteBurst) -> list[Writes]:
    """Its packets, one at a time."""
    count = packets_of(len(burst.payload), MTU)
    return [_packet(burst, index, count) for index in range(burst.first, burst.stop)]


def _packet(burst: WriteBurst, index: int, count: int) -> Writes:
    payload = burst.payload[index * MTU : (index + 1) * MTU]
    row = np.zeros((1, MTU), np.uint8)
    row[0, : len(payload)] = payload
    return Writes(
        src=np.array([1], np.int32),
        opcode=np.array([write_opcode(index, count)], np.uint8),
        psn=np.array([(burst.psn + index) & PSN_MASK], np.uint32),
        ack_request=np.array([burst.ack_request and index == burst.stop - 1]),
        va=np.array([burst.reth.va], np.uint64),
        rkey=np.array([burst.reth.rkey], np.uint32),
        size=np.array([burst.reth.length], np.uint32),
        imm=np.array([burst.imm], np.uint32),
        row=np.array([0], np.int32),
        start=np.array([0], np.int32),
        length=np.array([len(payload)], np.int32),
        rows=row,
    )


def batch(arrived: Iterable[Writes]) -> Writes:
    """Packets that arrive together, in this order."""
    every = list(arrived)
    columns = {
        name: np.concatenate([getattr(one, name) for one in every])
        for name in ("src", "opcode", "psn", "ack_request", "va", "rkey", "size", "imm", "start", "length", "rows")
    }
    return Writes(**columns, row=np.arange(len(every), dtype=np.int32))
