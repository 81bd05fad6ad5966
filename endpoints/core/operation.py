"""One collective operation on one rank: what algorithms implement, and what the endpoint offers them.

An algorithm is a class with this contract in ``endpoints/collectives/<name>.py``. It is a state machine without clock,
sockets or threads: the endpoint calls it, it calls its ``Services``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

from endpoints.core.communicator import Communicator
from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.messages import Message
from endpoints.core.packets import U8, Chunks, Outgoing, WriteBurst
from endpoints.core.states import Phase


class Services(Protocol):
    """What an endpoint does for the operation that runs on it."""

    rank: int
    comm: Communicator
    config: ProtocolConfig
    timing: Timing
    counters: Counter[str]
    heard_at: int
    """When anything last came from any rank; 0 before."""

    def send(self, peer: int, message: Message) -> None:
        """Send a control message reliably."""

    def read(self, op: int, peer: int, va: int, length: int, context: int) -> None:
        """READ from the buffer that the peer exposed for operation ``op``."""

    def has_room(self, length: int) -> bool:
        """Whether a WRITE of so many bytes may be sent now."""

    def write(self, op: int, peer: int, va: int, imm: int, payload: U8, now: int, *, ask: bool) -> WriteBurst:
        """A WRITE into the buffer that the peer exposes for operation ``op``, to be sent at once.

        ``ask`` for its acknowledgement, if nothing follows it soon.
        """

    def writes_acknowledged(self, op: int) -> bool:
        """Whether every WRITE of operation ``op`` has been acknowledged."""


class Operation(Protocol):
    """The contract. ``op`` is the operation's number, the same on every rank; times are absolute nanoseconds."""

    op: int
    phase: Phase
    phases: list[tuple[Phase, int]]
    """Every phase entered and when."""
    failure: tuple[str, int | None] | None
    """Reason and suspect rank once ``phase`` is FAILED."""

    @property
    def chunks(self) -> int:
        """Chunks that it brings altogether, or packets; the same on every rank."""

    @property
    def missing_chunks(self) -> int:
        """Chunks that are still to come."""

    @property
    def moving(self) -> bool:
        """Whether it has bytes to move now, its own or those that come in."""

    def pace(self, share: Fraction, now: int, *, ahead: bool) -> None:
        """What the link's rate is multiplied by from now on, and whether to send ahead of it, as others do not."""

    @property
    def awaited_bytes(self) -> int:
        """Bytes that must come before the next can be sent; 0 where sending waits for nothing."""

    def start(self, now: int) -> None:
        """Begin."""

    def on_message(self, peer: int, message: Message, now: int) -> None:
        """A control message for this operation."""

    def on_chunks(self, chunks: Chunks, now: int) -> None:
        """Multicast chunks, of this operation or stale."""

    def on_read_data(self, peer: int, context: int, index: int, payload: U8, now: int) -> None:
        """One packet of a READ."""

    def on_read_refused(self, peer: int, context: int, now: int) -> None:
        """The peer does not expose that buffer any more."""

    def on_write(self, peer: int, imm: int, size: int, now: int) -> None:
        """A WRITE of the peer into the exposed buffer is in place."""

    def on_acknowledged(self, now: int) -> None:
        """WRITEs may have been acknowledged, which is asked of it: go on from there."""

    def on_write_refused(self, peer: int, now: int) -> None:
        """The peer does not expose its buffer any more."""

    def after_batch(self) -> None:
        """All of a batch has been handed over: what follows from it as a whole."""

    def on_peer_lost(self, peer: int, now: int) -> None:
        """A peer does not answer any more."""

    def handle_timer(self, now: int) -> None:
        """Time has come to :meth:`next_timeout`; a spurious call is harmless."""

    def next_timeout(self) -> int | None:
        """When to be called next."""

    def next_departure(self) -> int | None:
        """When :meth:`due_bursts` has something that waits for nothing but its time."""

    def due_bursts(self, now: int) -> Iterable[Outgoing]:
        """Bulk data to send now; asked for again until there is none."""

    def remote_view(self, va: int, length: int) -> U8 | None:
        """Bytes of the exposed buffer, None where a peer may not read or write."""
