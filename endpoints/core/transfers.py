"""Carries out any schedule of point-to-point transfers on one rank: barrier, transfer, handshake.

A transfer goes as RDMA WRITEs of a few packets, pieces, each of which says by its immediate that it is in place: the
number of the piece among those from this sender, since both ends know the schedule. A piece leaves as soon as all its
bytes are here and its connection has room, the earliest of the schedule first; so whole blocks are handed on in a
pipeline, and a slow peer does not hold up the others. The handshake waits for the last acknowledgement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from endpoints.core.errors import ProtocolError
from endpoints.core.extents import Extents
from endpoints.core.lifecycle import Lifecycle
from endpoints.core.operation import Services
from endpoints.core.packets import U8, Chunks, Outgoing
from endpoints.core.schedule import Transfer
from endpoints.core.states import Input, Phase
from endpoints.core.timers import Timer


@dataclass(frozen=True, slots=True)
class _Piece:
    """``order`` is its place among all that this rank sends, ``number`` among those to the same rank."""

    order: int
    number: int
    offset: int
    size: int


class ScheduledTransfers(Lifecycle):
    """One rank's part of the ``transfers`` of an operation. Implements ``core.operation.Operation``.

    ``data`` is what this rank contributes, which has its place at ``own_offset`` of ``buffer``, the memory of a
    ``ReceiveBuffer``. What arrives is handed on as it is, unless a subclass makes something of it (:meth:`_take`,
    :meth:`_payload`).
    """

    def __init__(
        self, services: Services, op: int, transfers: Iterable[Transfer], data: U8, buffer: U8, own_offset: int
    ) -> None:
        super().__init__(services, op, buffer)
        self._held = Extents()
        own = self._buffer.view(own_offset, len(data))
        if own is None:
            raise ProtocolError(f"{len(data)} bytes at {own_offset}: the receive buffer has {self._buffer.size}")
        own[:] = data
        self._held.add(own_offset, own_offset + len(data))
        self._out: dict[int, deque[_Piece]] = {}
        self._in: dict[int, deque[tuple[int, int]]] = {}
        self._next_in: dict[int, int] = {}
        self._plan(transfers)
        self._missing = sum(size for pieces in self._in.values() for _, size in pieces)
        if self._held.total + self._missing != self._buffer.size:
            lacking = self._buffer.size - len(data)
            raise ProtocolError(f"rank {services.rank} lacks {lacking} bytes: the schedule brings {self._missing}")
        self._peers = sorted({*self._out, *self._in, *self._neighbours})
        self._refused_by: int | None = None

    def _plan(self, transfers: Iterable[Transfer]) -> None:
        """Cut what this rank sends and receives into pieces."""
        rank, order = self._s.rank, 0
        for transfer in transfers:
            if rank not in (transfer.src, transfer.dst):
                continue
            for offset, size in self._cut(transfer):
                if transfer.src == rank:
                    pieces = self._out.setdefault(transfer.dst, deque())
                    pieces.append(_Piece(order, len(pieces), offset, size))
                    order += 1
                else:
                    self._in.setdefault(transfer.src, deque()).append((offset, size))

    def _cut(self, transfer: Transfer) -> Iterator[tuple[int, int]]:
        """(offset, bytes) of WRITEs of at most ``write_packets`` packets, whose bytes are side by side in memory."""
        most, side_by_side = self._s.config.write_packets * self._s.comm.mtu, self._buffer.piece_bytes
        offset = transfer.offset
        while offset < transfer.stop:
            size = min(most, transfer.stop - offset, side_by_side - offset % side_by_side)
            yield offset, size
            offset += size

    # -- phases -------------------------------------------------------------------------------------------------

    def _expected(self) -> int:
        sent = sum(piece.size for pieces in self._out.values() for piece in pieces)
        return self._s.timing.chunk_ns * (2 * self._s.comm.size + (self._missing + sent) // self._s.comm.mtu)

    def _may_wait(self) -> Collection[int]:
        """Everybody who sends to this rank or receives from it, and the neighbours on the ring of ranks."""
        return self._peers

    def _after_barrier(self, now: int) -> None:
        if self._leave_barrier(Input.PEERS_READY, now):
            self._be_patient(now)
            self._check_complete(now)

    def _check_complete(self, now: int) -> None:
        if self.phase is Phase.TRANSFER and not self._missing:
            self._enter(Input.COMPLETE, now)
        if self.phase is Phase.HANDSHAKE and not self._out and self._s.writes_acknowledged(self.op):
            self._enter(Input.RELEASED, now)
            self._timers.clear()

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
    def chunks(self) -> int:
        """Packets that fill the receive buffer."""
        return -(-self._buffer.size // self._s.comm.mtu)

    @property
    def missing_chunks(self) -> int:
        """Packets that are still to come."""
        return -(-self._missing // self._s.comm.mtu)

    # -- arrivals -----------------------------------------------------------------------------------------------

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
        self._take(offset, size)
        self._held.add(offset, offset + size)
        self._missing -= size
        self._be_patient(now)
        self._check_complete(now)

    def _take(self, offset: int, size: int) -> None:
        """These bytes are in place, once and whole; after this they may be handed on."""

    def _payload(self, offset: int, size: int) -> U8:
        """What to send for these bytes, which are here; it stays as it is until it has been acknowledged."""
        payload = self._buffer.view(offset, size)
        assert payload is not None, (offset, size)
        return payload

    def on_acknowledged(self, now: int) -> None:
        """What was sent may have been acknowledged."""
        self._check_complete(now)

    def on_write_refused(self, peer: int, now: int) -> None:
        """The peer has failed, and will say why; if it does not, it is to blame itself."""
        del now
        self._refused_by = peer

    def on_peer_lost(self, peer: int, now: int) -> None:
        """A peer is dead, or we are deaf."""
        if not self._fail_if_deaf(now):
            self._fail(f"rank {peer} does not answer", peer, now)

    def on_chunks(self, chunks: Chunks, now: int) -> None:
        """Late multicast of an operation before."""
        del now
        self._s.counters["stale_operation"] += len(chunks)

    # -- time ---------------------------------------------------------------------------------------------------

    def _on_timer(self, timer: Timer, now: int) -> None:
        if timer is Timer.PATIENCE:
            self._impatient(now)
        else:
            self._on_deadline(now)

    def _impatient(self, now: int) -> None:
        """Nothing has come for long."""
        if self._refused_by is not None:
            self._fail(f"rank {self._refused_by} does not take part any more", self._refused_by, now)
            return
        self._probe(self._in, now)

    def _on_deadline(self, now: int) -> None:
        if self._in:
            waiting = min(self._in)
            reason = f"time is up in transfer: {self._missing} bytes missing, the first of rank {waiting}"
            self._fail(reason, waiting, now)
        else:
            self._fail("time is up in handshake: not everything was acknowledged", None, now)

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
        payload = self._payload(piece.offset, piece.size)
        yield self._s.write(self.op, peer, piece.offset, piece.number, payload, now, ask=not self._is_here(pieces))

    def _next_destination(self) -> int | None:
        """Whose first piece is the earliest in the schedule of those that can go now."""
        best: tuple[int, int] | None = None
        for peer, pieces in self._out.items():
            piece = pieces[0]
            if (best is None or piece.order < best[0]) and self._is_here(pieces) and self._s.has_room(piece.size):
                best = piece.order, peer
        return None if best is None else best[1]
