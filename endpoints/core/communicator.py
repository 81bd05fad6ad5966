"""Who takes part in a collective, and how each is reached: the value that every rank is handed at the start.

The exchange of queue pair numbers, which a real deployment does over its out-of-band service, has already happened:
queue pair numbers follow from the ranks, so a communicator is all that an endpoint needs to know of the fabric.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

ROCE_MTUS = (256, 512, 1024, 2048, 4096)
"""Path MTUs that InfiniBand and RoCE know (IBTA vol. 1, 9.4), in bytes of payload."""

MULTICAST_QPN = 0xFFFFFF
"""Destination queue pair of every multicast datagram (IBTA vol. 1, 10.5)."""

UD_QPN = 0x000010
"""Source queue pair of multicast datagrams, the same on each host and in every epoch: it is connected to nobody."""

RC_QPN_BASE = 0x000100
"""``RC_QPN_BASE + peer`` is the queue pair with which a rank talks to rank ``peer``."""

RC_BULK_QPN_BASE = 0x010000
"""``RC_BULK_QPN_BASE + peer`` is the queue pair over which a rank and rank ``peer`` WRITE into each other's buffers.

One of its own, so that no message of the barrier or of a failure waits behind bulk data."""

EPOCH_QPNS = 0x020000
"""So far apart are the queue pair numbers of one communicator and of the one that it was shrunk to."""
EPOCHS = 16
"""After so many, numbers are used again."""

WORKER_SHIFT = 21
"""The first 3 of a queue pair number's 24 bits say whose it is, 4 bits the epoch, 1 the kind, 16 the peer."""
WORKERS = 7
"""Most workers of a NIC: the eighth pattern of those bits is that of :data:`MULTICAST_QPN`, which is nobody's alone."""

FRAME_OVERHEAD_UD = 70
"""Bytes around the payload of a multicast chunk: Ethernet 14, IPv4 20, UDP 8, BTH 12, DETH 8, ImmDt 4, ICRC 4."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A rank's address. ``mac`` has 6 bytes, ``ip`` is the IPv4 address as an integer."""

    rank: int
    name: str
    mac: bytes
    ip: int


@dataclass(frozen=True, slots=True)
class GroupAddress:
    """A multicast tree's address (RFC 1112, 6.4 for the MAC)."""

    ip: int
    mac: bytes


@dataclass(frozen=True)
class Communicator:
    """The ranks (in order), the multicast trees they share, and the link that each hangs on.

    ``mtu`` is the path MTU in bytes of payload, ``rate_bps`` the rate of every host's link in bit/s, ``op_bits`` the
    bits of the immediate that carry the operation id (the other ``32 - op_bits`` number the chunk; PAPER 1.1: 8 + 24).
    ``epoch`` says how often it has been shrunk. ``worker`` of ``workers`` is whose it is where the ranks' NICs have
    several, each with a share (:meth:`share`).
    """

    peers: tuple[Peer, ...]
    groups: tuple[GroupAddress, ...]
    mtu: int
    rate_bps: int
    op_bits: int = 8
    epoch: int = 0
    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        if self.mtu not in ROCE_MTUS:
            raise ValueError(f"MTU {self.mtu}: RoCE path MTUs are {', '.join(map(str, ROCE_MTUS))} bytes")
        if not self.peers or [p.rank for p in self.peers] != list(range(len(self.peers))):
            raise ValueError("a communicator needs its ranks numbered 0, 1, 2, ...")
        if not self.groups:
            raise ValueError("a communicator needs at least one multicast tree")
        if self.rate_bps <= 0:
            raise ValueError(f"link rate {self.rate_bps} bit/s: must be positive")
        if not 8 <= self.op_bits <= 16:
            raise ValueError(f"op_bits {self.op_bits}: from 8 (BTH's PSN has 24 bits for the chunk) to 16")
        if not 0 <= self.worker < self.workers <= WORKERS:
            raise ValueError(f"worker {self.worker} of {self.workers}: numbered from 0, {WORKERS} at most")

    @property
    def size(self) -> int:
        """Number of ranks, P."""
        return len(self.peers)

    @property
    def chunk_bits(self) -> int:
        """Bits that number a chunk."""
        return 32 - self.op_bits

    @property
    def ud_qpn(self) -> int:
        """Source queue pair of multicast datagrams."""
        return UD_QPN + (self.worker << WORKER_SHIFT)

    @property
    def rc_qpn(self) -> int:
        """What the numbers of the queue pairs for messages begin with: that of ``peer`` is so many above it."""
        return RC_QPN_BASE + self._first_qpn

    @property
    def bulk_qpn(self) -> int:
        """The same for the queue pairs of RDMA WRITEs."""
        return RC_BULK_QPN_BASE + self._first_qpn

    @property
    def _first_qpn(self) -> int:
        return (self.worker << WORKER_SHIFT) + self.epoch % EPOCHS * EPOCH_QPNS

    def share(self, worker: int, workers: int) -> Communicator:
        """That of ``worker`` of the ``workers`` that each rank's NIC has: the same ranks, and its part of the rest.

        Its queue pairs are others, so that nothing of another worker's reaches them; of the trees it has every
        ``workers``-th, and that part of the rate. ValueError for more workers than trees, or than :data:`WORKERS`, and
        where it is a share already.
        """
        if self.workers > 1:
            raise ValueError(f"this is the share of worker {self.worker} of {self.workers}: it cannot be shared again")
        if workers > len(self.groups):
            raise ValueError(f"{workers} workers, {len(self.groups)} multicast trees: each worker needs one of its own")
        mine = replace(self, worker=worker, workers=workers)
        return replace(mine, groups=self.groups[worker::workers], rate_bps=max(1, self.rate_bps // workers))

    def shrink(self, lost: Collection[int]) -> Communicator:
        """The communicator of all ranks but ``lost``, numbered densely in the same order (MPI_Comm_shrink of ULFM).

        Its queue pairs are others, so that nothing that was sent before reaches them; a worker's share stays that
        worker's. ValueError for ranks that it does not have, and where nobody is left.
        """
        strangers = sorted(set(lost) - set(range(self.size)))
        if strangers:
            raise ValueError(f"rank {strangers[0]}: this communicator has 0 to {self.size - 1}")
        kept = [peer for peer in self.peers if peer.rank not in lost]
        if not kept:
            raise ValueError(f"all {self.size} ranks are lost: nobody is left")
        peers = tuple(replace(peer, rank=rank) for rank, peer in enumerate(kept))
        return replace(self, peers=peers, epoch=self.epoch + 1)
