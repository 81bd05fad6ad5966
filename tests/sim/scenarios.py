"""Random worlds for the protocol's tests: everything follows from one frozen value, which a failing test prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count

import numpy as np

from endpoints.collectives.registry import Collective, collective
from endpoints.core.config import Cutoff, ProtocolConfig
from endpoints.core.packets import U8
from endpoints.wire.templates import build_templates
from experiments.communicators import communicator
from experiments.sim.network import Fault
from experiments.sim.world import Outcome, World, build_world
from topo.registry import parse_topology

MS = 1_000_000
UNWRITTEN = 0xA5
TEMPLATES = build_templates()
LIMIT_NS = 120_000 * MS
"""Virtual time in which every operation must have ended, well or not."""


@dataclass(frozen=True)
class Case:
    """One scenario. Rates are probabilities per frame and receiving link; ``deaths`` are (rank, time in ms).

    ``apart`` bytes lie between the blocks of a buffer.
    """

    ranks: int
    size: int
    algorithm: str = "mcast_allgather"
    seed: int = 0
    mtu: int = 256
    rate_bps: int = 20_000_000
    topology: str = "single,hosts={ranks}"
    trees: int = 1
    chains: int | None = None
    send_batch: int = 4
    cutoff: Cutoff = Cutoff.INACTIVITY
    fetch_early: bool = True
    scheduling_ms: int = 45
    loss: float = 0.0
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    deaths: tuple[tuple[int, int], ...] = field(default=())
    first_op: int = 1
    operations: int = 1
    apart: int = 0


def chaos(case: Case) -> Fault:
    """Faults on the links into hosts, decided by a hash of seed, link, frame and its number there."""
    seen: dict[bytes, count[int]] = {}

    def fault(link: str, frame: bytes) -> list[tuple[int, bytes]]:
        if link.startswith("h"):
            return [(0, frame)]
        name = link.encode() + frame[26:64]
        attempt = next(seen.setdefault(name, count()))
        digest = blake2b(name, digest_size=32, key=f"{case.seed}/{attempt}".encode()).digest()
        loss, reorder, duplicate, corrupt = (
            int.from_bytes(digest[at : at + 4], "big") / 2**32 for at in range(0, 16, 4)
        )
        if loss < case.loss:
            return []
        delay = digest[16] * MS // 20 if reorder < case.reorder else 0
        if corrupt < case.corrupt:
            at = int.from_bytes(digest[17:19], "big") % len(frame)
            frame = frame[:at] + bytes([frame[at] ^ (1 + digest[19] % 255)]) + frame[at + 1 :]
        copies = [(delay, frame)]
        if duplicate < case.duplicate:
            copies.append((digest[20] * MS // 20, frame))
        return copies

    return fault


def make_world(case: Case) -> World:
    """The world of a case, with its faults and deaths."""
    fabric = parse_topology(case.topology.format(ranks=case.ranks))
    comm = communicator(fabric, mtu=case.mtu, rate_bps=case.rate_bps, trees=case.trees)
    config = ProtocolConfig(
        chains=case.chains,
        send_batch=case.send_batch,
        cutoff=case.cutoff,
        fetch_early=case.fetch_early,
        scheduling_ns=case.scheduling_ms * MS,
    )
    world = build_world(fabric, comm, TEMPLATES, config=config, seed=case.seed, first_op=case.first_op)
    if case.loss or case.reorder or case.duplicate or case.corrupt:
        world.network.fault = chaos(case)
    for rank, at_ms in case.deaths:
        world.kill_at(rank, at_ms * MS)
    return world


def fitting(size: int, algorithm: str) -> int:
    """The smallest size from ``size`` on that an algorithm can take."""
    unit = collective(algorithm).granularity
    return -(-size // unit) * unit


def contributions(algorithm: Collective, ranks: int, size: int, rng: np.random.Generator, apart: int = 0) -> list[U8]:
    """Random bytes of every rank: nothing, a block, or of shape (blocks, size) with ``apart`` bytes between them."""
    count = algorithm.does.data_blocks(ranks)
    shapes = [(count if algorithm.contributes(rank) else 0, size + apart) for rank in range(ranks)]
    data = [rng.integers(0, 256, shape, dtype=np.uint8)[:, :size] for shape in shapes]
    return [blocks if len(blocks) > 1 else blocks.reshape(-1) for blocks in data]


def reference(algorithm: Collective, data: Sequence[U8], rank: int) -> U8:
    """What ``rank`` must receive of what all contribute."""
    if algorithm.does.reduces:
        added = np.stack([given.reshape(len(data), -1)[rank] for given in data]).view("<u4").sum(axis=0, dtype="<u4")
        return added.view(np.uint8)
    return np.concatenate([given.ravel() for given in data])


def run_once(world: World, case: Case, number: int = 0) -> Outcome:
    """One operation; every rank that completed has been compared byte for byte, and every living rank has ended."""
    algorithm = collective(case.algorithm)
    rng = np.random.default_rng([case.seed, number])
    ranks = world.comm.size
    data = contributions(algorithm, ranks, case.size, rng, case.apart)
    taken = algorithm.does.buffer_blocks(ranks), case.size + case.apart
    whole = [np.full(taken, UNWRITTEN, np.uint8) for _ in range(ranks)]
    memory = [blocks[:, : case.size] for blocks in whole] if case.apart else ()
    outcome = world.run(algorithm, data, case.size, LIMIT_NS, memory)
    for rank in outcome.completed:
        expected = reference(algorithm, data, rank)
        assert np.array_equal(outcome.buffers[rank].ravel(), expected), f"rank {rank} completed with wrong bytes"
        assert np.all(whole[rank][:, case.size :] == UNWRITTEN), f"rank {rank} wrote between its blocks"
    for rank, end in enumerate(outcome.ends):
        assert end is not None or not world.hosts[rank].alive, f"rank {rank} never ended"
    for rank, failure in outcome.failures.items():
        assert failure.reason, f"rank {rank} failed without a reason"
    return outcome


def run_case(case: Case) -> list[Outcome]:
    """All operations of a case; without deaths every one of them must complete on every rank."""
    world = make_world(case)
    outcomes = []
    for number in range(case.operations):
        outcomes.append(run_once(world, case, number))
        if not case.deaths:
            assert not outcomes[-1].failures, outcomes[-1].failures
            assert len(outcomes[-1].completed) == world.comm.size
    return outcomes
