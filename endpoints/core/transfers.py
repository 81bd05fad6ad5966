"""Carries out any schedule of point-to-point transfers on one rank: barrier, transfer, handshake.

A transfer goes as RDMA WRITEs of a few packets, pieces, each of which says by its immediate that it is in place: the
number of the piece among those from this sender, since both ends know the schedule. A piece leaves as soon as all its
bytes are here and its connection has room, the earliest of the schedule first; so whole blocks are handed on in a
pipeline, and a slow peer does not hold up the others. The handshake waits for the last acknowledgement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from endpoints.core.barrier import Barrier
from endpoints.core.errors import ProtocolError
from endpoints.core.extents import Extents
from endpoints.core.messages import NOBODY, Kind, Message
from endpoints.core.operation import Services
from endpoints.core.packets import U8, Chunks, Outgoing
from endpoints.core.schedule import Transfer, segments
from endpoints.core.states import FINAL, TRANSITIONS, Input, Phase
from endpoints.core.timers import Timer, TimerTable

TRANSFER_BOUNDS = 4
"""The bound on an operation after its barrier, in bounds on the barrier."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """``order`` is its place among all that this rank sends, ``number`` among those to the same rank."""

    order: int
    number: int
    offset: int
    size: int


class ScheduledTransfers:
    """One rank's part of the ``transfers`` of an operation. Implements ``core.operation.Operation``.

    ``data`` is what this rank contributes, which has its place at ``own_offset`` of ``buffer``.
    """

    def __init__(
        self, services: Services, op: int, transfers: Iterable[Transfer], data: U8, buffer: U8, own_offset: int
    ) -> None:
        self.op = op
        self.phase = Phase.IDLE
        self.phases: list[tuple[Phase, int]] = []
        self.failure: tuple[str, int | None] | None = None
        self._s = services
        self._buffer = np.asarray(buffer)  # a memory map's own slices are slow
        self._held = Extents()
        if own_offset + len(data) > len(buffer):
            raise ProtocolError(f"{len(data)} bytes at {own_offset}: the receive buffer has {len(buffer)}")
        buffer[own_offset : own_offset + len(data)] = data
        self._held.add(own_offset, own_offset + len(data))
        self._out: dict[int, deque[_Piece]] = {}
        self._in: dict[int, deque[tuple[int, int]]] = {}
        self._next_in: dict[int, int] = {}
        self._plan(transfers)
        self._missing = sum(size for pieces in self._in.values() for _, size in pieces)
        if self._held.total + self._missing != len(buffer):
            lacking = len(buffer) - len(data)
            raise ProtocolError(f"rank {services.rank} lacks {lacking} bytes: the schedule brings {self._missing}")
        self._peers = frozenset({*self._out, *self._in, *self._neighbours()})
        self._barrier = Barrier(services.rank, services.comm.size, self._tell_barrier)
        self._timers = TimerTable()
        self._progress_at = 0
        self._heard_anything = services.comm.size == 1
        self._refused_by: int | None = None

    def _plan(self, transfers: Iterable[Transfer]) -> None:
        """Cut what this rank sends and receives into pieces."""
        rank, most = self._s.rank, self._s.config.write_packets * self._s.comm.mtu
        order = 0
        for transfer in transfers:
            if rank not in (transfer.src, transfer.dst):
                continue
            for offset, size in segments(transfer.size, most):
                if transfer.src == rank:
                    pieces = self._out.setdefault(transfer.dst, deque())
                    pieces.append(_Piece(order, len(pieces), transfer.offset + offset, size))
                    order += 1
                else:
                    self._in.setdefault(transfer.src, deque()).append((transfer.offset + offset, size))

    def _neighbours(self) -> set[int]:
        rank, size = self._s.rank, self._s.comm.size
        return {(rank - 1) % size, (rank + 1) % size} - {rank}

    # -- phases -------------------------------------------------------------------------------------------------

    def _enter(self, step: Input, now: int) -> None:
        table = TRANSITIONS[self.phase]
        if step not in table:
            raise ProtocolError(f"operation {self.op}: {step.value} in phase {self.phase.value}")
        self.phase = table[step]
        self.phases.append((self.phase, now))

    def start(self, now: int) -> None:
        """Arrive at the barrier."""
        self._enter(Input.START, now)
        self._timers.set(Timer.DEADLINE, now + self._bound())
        self._barrier.start()
        self._after_barrier(now)

    def _bound(self) -> int:
        """Nanoseconds for the barrier; the transfers have ``TRANSFER_BOUNDS`` times as many."""
        config, timing = self._s.config, self._s.timing
        sent = sum(piece.size for pieces in self._out.values() for piece in pieces)
        expected = timing.chunk_ns * (2 * self._s.comm.size + (self._missing + sent) // self._s.comm.mtu)
        return max(config.op_timeout_ns + 2 * timing.peer_timeout_ns, config.op_timeout_scaling * expected)

    def _after_barrier(self, now: int) -> None:
        if self.phase is Phase.BARRIER and self._barrier.passed:
            self._enter(Input.PEERS_READY, now)
            self._timers.set(Timer.DEADLINE, now + TRANSFER_BOUNDS * self._bound())
            self._progressed(now)
            self._check_complete(now)

    def _progressed(self, now: int) -> None:
        self._progress_at = now
        self._timers.set(Timer.PATIENCE, now + self._s.timing.patience_ns)

    def _check_complete(self, now: int) -> None:
        if self.phase is Phase.TRANSFER and not self._missing:
            self._enter(Input.COMPLETE, now)
        if self.phase is Phase.HANDSHAKE and not self._out and self._s.writes_acknowledged:
            self._enter(Input.RELEASED, now)
            self._timers.clear()

    def _fail(self, reason: str, suspect: int | None, now: int) -> None:
        """Give up, and tell everybody who may wait for this rank, and the neighbours on the ring of ranks."""
        if self.phase in FINAL:
            return
        self._enter(Input.FAILURE, now)
        self.failure = (reason, suspect)
        self._timers.clear()
        for peer in sorted(self._peers):
            self._s.send(peer, Message(Kind.ABORT, self.op, (NOBODY if suspect is None else suspect,)))

    @property
    def awaited_bytes(self) -> int:
        """The next piece to hand on, where all that this rank still has to send must come first."""
        if any(map(self._is_here, self._out.values())):
            return 0
        return min((pieces[0].size for pieces in self._out.values()), default=0)

    def _is_here(self, pieces: deque[_Piece]) -> bool:
        """Whether the first of these pieces can be sent."""
        return bool(pieces) and self._held.covers(pieces[0].offset, pieces[0].offset + pieces[0].size)

    @property
    def missing_chunks(self) -> int:
        """Packets that are still to come."""
        return -(-self._missing // self._s.comm.mtu)

    # -- arrivals -----------------------------------------------------------------------------------------------

    def on_message(self, peer: int, message: Message, now: int) -> None:
        """A control message of this operation."""
        self._heard_anything = True
        match message.kind:
            case Kind.BARRIER if message.body:
                self._barrier.hear(message.body[0])
                self._after_barrier(now)
            case Kind.ABORT if message.body:
                suspect = None if message.body[0] == NOBODY else message.body[0]
                self._fail(f"rank {peer} gave up", suspect, now)

    def on_write(self, peer: int, imm: int, size: int, now: int) -> None:
        """A piece is in place; pieces of one peer come in the order of the schedule."""
        self._heard_anything = True
        pieces = self._in.get(peer)
        number = self._next_in.get(peer, 0)
        if not pieces or imm != number or pieces[0][1] != size:
            self._s.counters["bad_write"] += 1
            return
        self._next_in[peer] = number + 1
        offset, _ = pieces.popleft()
        if not pieces:
            del self._in[peer]
        self._held.add(offset, offset + size)
        self._missing -= size
        self._progressed(now)
        self._check_complete(now)

    def on_acknowledged(self, now: int) -> None:
        """Everything that was sent has been acknowledged."""
        self._check_complete(now)

    def on_write_refused(self, peer: int, now: int) -> None:
        """The peer has failed, and will say why; if it does not, it is to blame itself."""
        del now
        self._refused_by = peer

    def on_peer_lost(self, peer: int, now: int) -> None:
        """A peer is dead, or we are deaf."""
        if not self._heard_anything:
            self._fail("heard nothing from any rank: its own link seems to be down", self._s.rank, now)
        else:
            self._fail(f"rank {peer} does not answer", peer, now)

    def on_chunks(self, chunks: Chunks, now: int) -> None:
        """Late multicast of an operation before."""
        del now
        self._s.counters["stale_operation"] += len(chunks)

    def on_read_data(self, peer: int, context: int, index: int, payload: U8, now: int) -> None:
        """Nothing is ever READ."""

    def on_read_refused(self, peer: int, context: int, now: int) -> None:
        """Nothing is ever READ."""

    def after_batch(self) -> None:
        """Nothing: what arrived is forwarded when there is room to send."""

    # -- time ---------------------------------------------------------------------------------------------------

    def handle_timer(self, now: int) -> None:
        """Whatever is due."""
        for timer in self._timers.expired(now):
            if timer is Timer.PATIENCE:
                self._impatient(now)
            else:
                self._on_deadline(now)

    def _impatient(self, now: int) -> None:
        """Nothing has come for long: those who still owe something must show that they live."""
        if self._refused_by is not None:
            self._fail(f"rank {self._refused_by} does not take part any more", self._refused_by, now)
            return
        for peer in self._in:
            self._s.send(peer, Message(Kind.PROBE, self.op))
        self._timers.set(Timer.PATIENCE, now + self._s.timing.patience_ns)

    def _on_deadline(self, now: int) -> None:
        if not self._heard_anything:
            self._fail("heard nothing from any rank: its own link seems to be down", self._s.rank, now)
        elif self.phase is Phase.BARRIER:
            waiting = self._barrier.waiting_for
            self._fail(f"time is up in barrier: nothing came from rank {waiting}", waiting, now)
        elif self._in:
            waiting = min(self._in)
            reason = f"time is up in transfer: {self._missing} bytes missing, the first of rank {waiting}"
            self._fail(reason, waiting, now)
        else:
            self._fail("time is up in handshake: not everything was acknowledged", None, now)

    def next_timeout(self) -> int | None:
        """The earliest timer."""
        return self._timers.next()

    # -- departures ---------------------------------------------------------------------------------------------

    def due_bursts(self, now: int) -> Iterator[Outgoing]:
        """The next piece that is here and for which there is room, if any: asked for again, there may be another."""
        if self.phase not in (Phase.TRANSFER, Phase.HANDSHAKE):
            return
        peer = self._next_destination()
        if peer is None:
            return
        pieces = self._out[peer]
        piece = pieces.popleft()
        if not pieces:
            del self._out[peer]
        payload = self._buffer[piece.offset : piece.offset + piece.size]
        yield self._s.write(peer, piece.offset, piece.number, payload, now, ask=not self._is_here(pieces))

    def _next_destination(self) -> int | None:
        """Whose first piece is the earliest in the schedule of those that can go now."""
        best: tuple[int, int] | None = None
        for peer, pieces in self._out.items():
            piece = pieces[0]
            if (best is None or piece.order < best[0]) and self._is_here(pieces) and self._s.has_room(piece.size):
                best = piece.order, peer
        return None if best is None else best[1]

    def remote_view(self, va: int, length: int) -> U8 | None:
        """The receive buffer, into which peers may write while the operation lasts."""
        return self._buffer[va : va + length] if 0 <= va <= va + length <= len(self._buffer) else None

    def _tell_barrier(self, peer: int, round_: int) -> None:
        self._s.send(peer, Message(Kind.BARRIER, self.op, (round_,)))
