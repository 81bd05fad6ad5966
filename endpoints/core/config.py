"""The protocol's knobs and the times that follow from them. Names as in the authors' artifact (PAPER 1.10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from endpoints.core.communicator import FRAME_OVERHEAD_UD, Communicator
from endpoints.core.pacing import wire_ns
from endpoints.core.serial import PSN_BITS

MS = 1_000_000


ACK_SHARE = 2
"""A responder may sit on an acknowledgement for this part of the scheduling time, so that one acknowledges several
messages and does not wake a host that has better things to do (IBTA vol. 1, 9.7.5.1.2 lets it coalesce)."""


UPLINK_CHUNKS = 8
"""Chunks for which the host's own link has room at least."""


class Cutoff(Enum):
    """How the end of the fast path is told (PAPER 1.5)."""

    INACTIVITY = "inactivity"
    """A slack, re-armed by every batch that brings chunks."""
    DEADLINE = "deadline"
    """One deadline for the operation: expected duration at the link's rate and a slack."""


@dataclass(frozen=True, slots=True)
class ProtocolConfig:
    """Parameters of the protocol; the defaults are for an emulated fabric on one machine.

    ``chains`` is the number of roots that multicast at once in Allgather (None: all of them, each at
    ``rate / (P - 1)``, the only schedule in which no receiving link ever idles; the artifact's default is 2).
    ``send_batch`` chunks leave at a time (artifact: 128; small here, since a burst waits in every queue of the tree).
    ``slack_chunks`` and ``scheduling_ns`` make the cutoff's slack: chunk times of silence (a third party's model of the
    paper has 100, for one stream at a time; here several run side by side and 64 lost in a row are as unlikely), and
    the time for which an emulated host may sleep.
    ``fetch_early`` lets the slow path begin beside the fast path, with the chunks that are surely lost; without it, it
    waits for the cutoff, as in the paper.
    An RDMA WRITE has at most ``write_packets`` packets, all of which a rank must have received to hand them on.
    """

    chains: int | None = None
    send_batch: int = 8
    cutoff: Cutoff = Cutoff.INACTIVITY
    fetch_early: bool = True
    slack_chunks: int = 64
    scheduling_ns: int = 45 * MS
    read_window: int = 32
    read_chunks: int = 16
    write_packets: int = 16
    peer_timeout_ns: int = 4_000 * MS
    op_timeout_ns: int = 10_000 * MS
    op_timeout_scaling: int = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in nanoseconds that follow from a communicator's link rate and a configuration."""

    chunk_ns: int
    uplink_ns: int
    """Time of the host's own link for which frames may be handed to it at once; the link itself spaces them. A host
    that has run out of room is woken when half of it is there again, not for each frame."""
    write_window: int
    """Packets of RDMA WRITEs that may be unacknowledged: what the link carries while they wait for a link and the peer
    sleeps, and as long again for the answer; twice that, since each switch on the way adds a little (the ring's hops
    between pods of a fat tree were short of packets with less). Never less than one WRITE, nor more than a quarter of
    the PSNs, of which no two that may be under way look alike (IBTA vol. 1, 9.7.1)."""
    slack_ns: int
    reorder_ns: int
    look_ns: int
    """Between looks at what was lost: at least the reordering time, and long enough that one FETCH asks for much."""
    ack_delay_ns: int
    min_rto_ns: int
    initial_rto_ns: int
    peer_timeout_ns: int
    patience_ns: int

    @classmethod
    def of(cls, comm: Communicator, config: ProtocolConfig) -> Timing:
        """Derive them: everything scales with the time that one full chunk occupies a link."""
        chunk_ns = wire_ns(comm.mtu + FRAME_OVERHEAD_UD, comm.rate_bps)
        uplink_ns = max(UPLINK_CHUNKS * chunk_ns, config.scheduling_ns // 2)
        min_rto = config.scheduling_ns + 8 * chunk_ns
        reorder_ns = config.scheduling_ns + 8 * chunk_ns
        initial_rto = config.scheduling_ns + 32 * chunk_ns
        return cls(
            chunk_ns=chunk_ns,
            uplink_ns=uplink_ns,
            write_window=max(
                config.write_packets, min(4 * -(-(config.scheduling_ns + uplink_ns) // chunk_ns), 1 << PSN_BITS - 2)
            ),
            slack_ns=2 * config.scheduling_ns + config.slack_chunks * chunk_ns,
            reorder_ns=reorder_ns,
            look_ns=2 * reorder_ns,
            ack_delay_ns=config.scheduling_ns // ACK_SHARE,
            min_rto_ns=min_rto,
            initial_rto_ns=initial_rto,
            peer_timeout_ns=max(config.peer_timeout_ns, 50 * initial_rto),
            patience_ns=max(config.peer_timeout_ns // 4, 10 * initial_rto),
        )
