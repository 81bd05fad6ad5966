"""A NIC's memory as a budget: what a collective needs of it, and into how many rounds it must be cut to fit.

Three things lie in the memory of a NIC (PAPER 2.4): staging, into which datagrams arrive before their number says where
they belong; what is known of each chunk; and the queue pairs. Staging and queue pairs have the same size whatever is
sent; what is known of each chunk grows with the receive buffer, so it decides what fits: a collective that is too large
is cut into rounds, each of which carries a slice of every block. Sizes are in bytes unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from endpoints.core.barrier import children_of, parent_of
from endpoints.core.communicator import FRAME_OVERHEAD_UD
from endpoints.core.layout import max_frame_length
from endpoints.io.slots import Geometry

MEMORY = 8 << 20
"""A NIC's memory unless another is given: the ring of 1024 frames of 4 KiB that an emulated host needs, which shares
its processor and sleeps for milliseconds, is 4.3 MiB, and as much again is left for the state of the chunks. The last
level cache of a BlueField-3's data path accelerator is said to have 1.5 MiB (recalled, PAPER 2.4)."""

BITS_PER_CHUNK = {"received": 1, "owner": 16, "overtaken": 8, "asked for": 8, "on its way": 8}
"""What the engine knows of a chunk, in bits: ``core.fast_path`` has the first two, ``core.slow_path`` the others. The
paper's bitmap alone is 1 bit."""

WORD_BITS = 64
"""A bitmap consists of whole words."""

CONTEXT_BYTES = 256
SEND_ENTRY_BYTES = 64
RECEIVE_ENTRY_BYTES = 16
COMPLETION_ENTRY_BYTES = 64
"""Of a queue pair: its state, and an entry of each of its queues. Nominal: as recalled of ConnectX; an emulated NIC's
queue pairs are objects of about that size."""

QUEUE_ENTRIES = 128
"""Entries of a queue (the authors' artifact: P2P_QP_DEPTH, PAPER 1.10)."""


class DoesNotFit(ValueError):
    """No round is small enough; the message has the numbers."""


@dataclass(frozen=True, slots=True)
class Collective:
    """What is to be sent: ``roots`` blocks of ``block_bytes`` bytes in chunks of ``mtu`` among ``ranks`` ranks.

    ``psn_bits`` number the chunks of a receive buffer.
    """

    ranks: int
    roots: int
    block_bytes: int
    mtu: int = 4096
    psn_bits: int = 24

    @property
    def chunks_per_block(self) -> int:
        """Chunks of one block."""
        return -(-self.block_bytes // self.mtu)


@dataclass(frozen=True, slots=True)
class Nic:
    """What a NIC has, and is set up for.

    ``memory`` bytes; ``staging`` slots for each of ``workers``, which have a multicast queue pair each; each of as many
    ``communicators`` runs so many collectives at a time as may be ``outstanding``.
    """

    memory: int = MEMORY
    staging: int = 1024
    workers: int = 1
    communicators: int = 1
    outstanding: int = 1
    bits_per_chunk: int = sum(BITS_PER_CHUNK.values())


@dataclass(frozen=True, slots=True)
class Part:
    """``count`` things of ``unit`` bytes each, and why so many of that size."""

    name: str
    count: int
    unit: int
    why: str

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.count * self.unit


@dataclass(frozen=True, slots=True)
class Plan:
    """What lies in the memory while a round runs; every round but the last sends ``round_bytes`` of each block."""

    parts: tuple[Part, ...]
    memory: int
    rounds: int
    round_bytes: int

    @property
    def bytes(self) -> int:
        """What is taken."""
        return sum(part.bytes for part in self.parts)


def of_worker(memory: int | None, staging: int, workers: int, outstanding: int) -> Nic:
    """What one of a NIC's workers has: all have equal parts of the memory (the default if None) and of the staging."""
    return Nic((memory or MEMORY) // workers, staging=staging // workers, outstanding=outstanding)


def staging_depth(*, rate_bps: int, away_ns: int, burst: int, mtu: int) -> int:
    """Slots that lose nothing: what the link brings while nobody takes it away for ``away_ns``, and ``burst`` chunks.

    That is the bandwidth-delay product, and what comes ahead of the rate, such as a batch that a shaper lets through.
    """
    bits = (mtu + FRAME_OVERHEAD_UD) * 8
    return -(-rate_bps * away_ns // (bits * 1_000_000_000)) + burst


def largest_buffer(psn_bits: int, mtu: int) -> int:
    """Bytes of the largest receive buffer whose chunks can be numbered."""
    return mtu << psn_bits


def state_bytes(chunks: int, bits_per_chunk: int) -> int:
    """Bytes of the state of so many chunks; each of its tables consists of whole words."""
    return -(-chunks // WORD_BITS) * bits_per_chunk * WORD_BITS // 8


def connections(ranks: int) -> int:
    """Reliable connections of the rank that has most: with its neighbours in the barrier's tree and in the ring."""
    if ranks == 1:
        return 0
    peers = (
        {(rank - 1) % ranks, (rank + 1) % ranks, parent_of(rank), *children_of(rank, ranks)} for rank in range(ranks)
    )
    return max(len(its - {None}) for its in peers)


def plan(collective: Collective, nic: Nic) -> Plan:
    """The fewest rounds of a collective that fit; :class:`DoesNotFit` if not even one chunk of each block does."""
    fixed = _fixed(collective, nic)
    left = nic.memory - sum(part.bytes for part in fixed)
    running = nic.communicators * nic.outstanding
    words = left // running * 8 // (nic.bits_per_chunk * WORD_BITS)
    chunks = min(words * WORD_BITS, 1 << collective.psn_bits)
    if left < 0 or chunks < collective.roots:
        least = running * state_bytes(collective.roots, nic.bits_per_chunk)
        taken = ", ".join(f"{part.name} {part.bytes}" for part in fixed)
        raise DoesNotFit(
            f"{nic.memory} bytes of memory, and {nic.memory - left + least} are needed for one chunk of each of "
            f"{collective.roots} blocks: {taken}, chunk state {least}; "
            f"{collective.psn_bits} bits number {1 << collective.psn_bits} chunks"
        )
    rounds = max(1, -(-collective.chunks_per_block // (chunks // collective.roots)))
    per_block = -(-collective.chunks_per_block // rounds)  # all rounds alike
    state = Part(
        "chunk state",
        running,
        state_bytes(per_block * collective.roots, nic.bits_per_chunk),
        f"{per_block * collective.roots} chunks of {nic.bits_per_chunk} bit{'' if nic.bits_per_chunk == 1 else 's'}",
    )
    return Plan(
        parts=(state, *fixed),
        memory=nic.memory,
        rounds=rounds,
        round_bytes=collective.block_bytes if rounds == 1 else per_block * collective.mtu,
    )


def _fixed(collective: Collective, nic: Nic) -> tuple[Part, ...]:
    """What is needed whatever is sent."""
    ring = Geometry.for_frames(max_frame_length(collective.mtu), nic.staging)
    reliable = connections(collective.ranks)
    entries = SEND_ENTRY_BYTES + COMPLETION_ENTRY_BYTES
    return (
        Part("staging", nic.workers, ring.size, f"{ring.slots} slots of {ring.slot_size} a worker"),
        Part(
            "multicast queue pairs",
            nic.communicators * nic.workers,
            CONTEXT_BYTES + QUEUE_ENTRIES * entries + nic.staging * RECEIVE_ENTRY_BYTES,
            "one a worker, a receive posted a slot",
        ),
        Part(
            "reliable connections",
            nic.communicators * reliable,
            CONTEXT_BYTES + QUEUE_ENTRIES * (entries + RECEIVE_ENTRY_BYTES),
            f"{reliable} peers of the barrier and the ring",
        ),
    )
