"""Reliable multicast by any set of roots: Broadcast with one root, Allgather with all of them.

Barrier, fast path, cutoff, slow path, final handshake (PAPER 1.2 to 1.8), with the phases of ``states``. The sending
side (a root's turn) runs beside the phases: a root that lost the token begins at its own cutoff. So does the slow path:
what is surely lost is fetched while the multicast goes on, unless the configuration has it wait for the cutoff, as in
the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction

from endpoints.core.blocks import BlockLayout
from endpoints.core.config import Cutoff
from endpoints.core.errors import ProtocolError
from endpoints.core.fast_path import Placement, Sender, prefix_of
from endpoints.core.lifecycle import Lifecycle
from endpoints.core.messages import Kind, Message, Ranges, ranges_messages
from endpoints.core.operation import Services
from endpoints.core.packets import U8, Chunks, UdBurst
from endpoints.core.sequencer import HEAD_START_CHUNKS, Turn, longest_chain, turn
from endpoints.core.slow_path import Exhausted, Flags, Overtaken, Recovery, Supplier
from endpoints.core.states import FINAL, RECEIVING, Input, Phase
from endpoints.core.timers import Timer


class ReliableMulticast(Lifecycle):
    """``roots`` each contribute ``block_bytes``; every rank ends with all blocks in ``buffer``, in root order.

    ``data`` is the own block (None for a rank that is no root); ``buffer`` is the memory of a ``ReceiveBuffer`` of
    ``len(roots)`` blocks.
    Implements ``core.operation.Operation``.
    """

    def __init__(self, services: Services, op: int, roots: tuple[int, ...], data: U8 | None, buffer: U8) -> None:
        super().__init__(services, op, buffer)
        self._roots = roots
        comm, rank = services.comm, services.rank
        blocks = self._buffer.blocks(len(roots))
        self._layout = layout = BlockLayout(len(roots), blocks.shape[1], comm.mtu)
        layout.check_numbering(comm.chunk_bits)
        prefix = prefix_of(op, comm.chunk_bits)
        self.placement = Placement(layout=layout, roots=roots, blocks=blocks, prefix=prefix, chunk_bits=comm.chunk_bits)
        self._turn = turn(rank, roots, comm.size, services.config.chains)
        self._sender: Sender | None = None
        self._share = Fraction(1)
        self._ahead = False
        if self._turn is not None:
            if data is None or len(data) != layout.block_bytes:
                raise ProtocolError(f"rank {rank} is a root: its data must have {layout.block_bytes} bytes")
            block = roots.index(rank)
            self.placement.place_block(block, data)
            self._sender = Sender(
                layout=layout,
                block=block,
                data=data,
                trees=len(comm.groups),
                prefix=prefix,
                batch=services.config.send_batch,
            )
        self._overtaken = Overtaken(self.placement)
        self._supplier = Supplier(self.placement, self, self._settled, self._unsent)
        self._recovery = Recovery(
            rank=rank,
            size=comm.size,
            roots=roots,
            placement=self.placement,
            wire=self,
            piece=services.config.read_chunks,
            window=services.config.read_window,
        )
        self._has_token = self._turn is not None and self._turn.position == 0
        self._token_passed = False
        self._right_finished = comm.size == 1
        self._ends_seen = False
        self.missing_at_cutoff = 0

    # -- phases -------------------------------------------------------------------------------------------------

    def _expected(self) -> int:
        """Nanoseconds that the fast path takes at the link's rate."""
        if self._layout.chunks == 0:
            return 0
        active = min(self._s.config.chains or len(self._roots), len(self._roots))
        share = max(1, self._s.comm.size - 1 if active == self._s.comm.size else active)
        steps = longest_chain(len(self._roots), self._s.config.chains)
        return steps * self._layout.chunks_per_block * self._s.timing.chunk_ns * share

    def _after_barrier(self, now: int) -> None:
        if not self._leave_barrier(Input.EVERYONE_READY, now):
            return
        self._arm_cutoff(now)
        self._arm_token(now)
        if self._s.config.fetch_early:
            self._timers.set(Timer.LOOK, now + self._s.timing.look_ns)
        if self._has_token:
            self._begin_turn(now)
        self._check_complete(now)

    def _begin_turn(self, now: int) -> None:
        if self._sender is None or self._turn is None or self._sender.started:
            return
        self._timers.stop(Timer.TOKEN)
        offset = self._turn.offset_chunks(self._s.config.send_batch) * self._s.timing.chunk_ns
        self._sender.begin(now + offset, self._interval(self._turn))
        self._pass_token(now)

    @property
    def _head_start(self) -> int:
        """Nanoseconds; the workers of the roots' NICs, each with its part of the rate, have it together."""
        return HEAD_START_CHUNKS * self._s.timing.chunk_ns // self._s.comm.workers

    def _interval(self, turn: Turn) -> int:
        """Nanoseconds from one own chunk to the next."""
        return int(self._s.timing.chunk_ns * turn.share / self._share)

    @property
    def moving(self) -> bool:
        """Whether chunks are on their way, from others or to others."""
        return super().moving or (self.phase is Phase.HANDSHAKE and self._sending)

    @property
    def _sending(self) -> bool:
        return self._sender is not None and not self._sender.finished

    def pace(self, share: Fraction, now: int, *, ahead: bool) -> None:
        """Have the own multicast go on at another part of the rate, with the head start or without it."""
        self._share = share
        if self._sender is not None and self._turn is not None:
            self._sender.pace(now, self._interval(self._turn))
            self._sender.shift((self._ahead - ahead) * self._head_start)
        self._ahead = ahead
        if self.phase is Phase.MULTICAST and self._s.config.cutoff is Cutoff.DEADLINE:
            self._arm_cutoff(now)

    def _pass_token(self, now: int) -> None:
        if self._sender is None or self._turn is None or self._token_passed:
            return
        if self._sender.started and self._sender.finished:
            self._token_passed = True
            if self._turn.successor is not None:
                self._s.send(self._turn.successor, Message(Kind.TOKEN, self.op))
            self._supplier.progress()
            self._check_released(now)

    def _arm_cutoff(self, now: int) -> None:
        slack = self._s.timing.slack_ns
        if self._s.config.cutoff is Cutoff.DEADLINE:
            left = Fraction(self.missing_chunks, max(1, self._layout.chunks))
            self._timers.set(Timer.CUTOFF, now + int(self._expected() * left / self._share) + slack)
        else:
            self._timers.set(Timer.CUTOFF, now + slack)

    def _arm_token(self, now: int) -> None:
        """A silence after which this root does not wait for its token any more: longer, the later its turn.

        Roots further up the chain break the silence first, so that they go one after the other even then.
        """
        if self._sender is not None and self._turn is not None and not self._sender.started:
            self._timers.set(Timer.TOKEN, now + self._s.timing.slack_ns * (2 + self._turn.position))

    def _check_complete(self, now: int) -> None:
        if self.phase in RECEIVING and self.placement.complete:
            self._enter(Input.COMPLETE, now)
            for timer in (Timer.CUTOFF, Timer.LOOK):
                self._timers.stop(timer)
            self._be_patient(now)
            if self._s.comm.size > 1:
                self._s.send(self._left, Message(Kind.FIN, self.op))
            self._check_released(now)

    def _check_released(self, now: int) -> None:
        if self.phase is Phase.HANDSHAKE and self._right_finished and not self._sending:
            self._enter(Input.RELEASED, now)
            self._timers.clear()

    def _may_wait(self) -> Collection[int]:
        return self._neighbours

    @property
    def chunks(self) -> int:
        """Chunks of the receive buffer."""
        return self._layout.chunks

    @property
    def missing_chunks(self) -> int:
        """Chunks that are still to come."""
        return self.placement.bitmap.missing

    # -- arrivals -----------------------------------------------------------------------------------------------

    def on_chunks(self, chunks: Chunks, now: int) -> None:
        """Place them; completes the buffer, or re-arms the cutoff."""
        self._heard_anything = True
        if not self.placement.place(chunks, self._s.counters):
            return
        self._arm_token(now)
        if self.phase is Phase.MULTICAST:
            self._after_progress(now)
        elif self.phase is Phase.RECOVERY:
            self._recovery.multicast_arrived(now)
        self._check_complete(now)
        self.after_batch()

    def _after_progress(self, now: int) -> None:
        if not self._ends_seen and self.placement.all_ends_seen():
            # Every stream's last chunk is here, so what is missing was lost or is just being overtaken. Its last batch
            # would announce itself sooner, but busy switches hold the rest of it back for longer than that.
            self._ends_seen = True
            self._timers.set(Timer.CUTOFF, now + self._s.timing.reorder_ns)
        elif not self._ends_seen and self._s.config.cutoff is Cutoff.INACTIVITY:
            self._arm_cutoff(now)

    def on_message(self, peer: int, message: Message, now: int) -> None:
        """A control message of this operation."""
        super().on_message(peer, message, now)
        match message.kind:
            case Kind.TOKEN:
                self._has_token = True
                if self.phase is not Phase.BARRIER:
                    self._begin_turn(now)
            case Kind.FETCH:
                self._supplier.fetch(peer, message.ranges)
            case Kind.READY if self.phase in RECEIVING:
                self._recovery.ready(peer, message.ranges, now)
            case Kind.GONE:
                self._lose_supplier(peer, now)
            case Kind.FIN if peer == self._right:
                self._right_finished = True
                self._check_released(now)

    def on_read_data(self, peer: int, context: int, index: int, payload: U8, now: int) -> None:
        """One chunk of a READ; ``context`` is the first chunk that it asked for."""
        chunk = context + index
        if not self.placement.place_one(chunk, payload):
            self._s.counters["duplicates"] += 1
            return
        self._s.counters["recovered"] += 1
        self._recovery.arrived(peer, now)
        self._check_complete(now)

    def after_batch(self) -> None:
        """Announce what it brought in one message to each who waits, not one for each chunk; and READ on."""
        self._supplier.progress()
        if self.phase in RECEIVING:
            self._recovery.read_on()

    def on_read_refused(self, peer: int, context: int, now: int) -> None:
        """The supplier has finished the operation."""
        del context
        self._lose_supplier(peer, now)

    def on_peer_lost(self, peer: int, now: int) -> None:
        """A peer is dead, or we are deaf; in recovery another may do, elsewhere the operation cannot go on."""
        if self._fail_if_deaf(now):
            return
        if self.phase in RECEIVING:
            self._lose_supplier(peer, now)
        elif self.phase not in FINAL:
            self._fail(f"rank {peer} does not answer", peer, now)

    def _lose_supplier(self, peer: int, now: int) -> None:
        self._try_recovery(lambda: self._recovery.lose(peer, now), now)

    # -- time ---------------------------------------------------------------------------------------------------

    def _on_timer(self, timer: Timer, now: int) -> None:
        match timer:
            case Timer.CUTOFF:
                self._on_cutoff(now)
            case Timer.TOKEN:
                self._begin_turn(now)
            case Timer.LOOK:
                self._on_look(now)
            case Timer.PATIENCE:
                self._on_patience(now)
            case Timer.DEADLINE:
                self._on_deadline(now)

    def _on_cutoff(self, now: int) -> None:
        if self.phase is not Phase.MULTICAST:
            return
        self._enter(Input.CUTOFF, now)
        self.missing_at_cutoff = self.placement.bitmap.missing
        self._s.counters["missing_at_cutoff"] += self.missing_at_cutoff
        self._timers.stop(Timer.LOOK)
        self._try_recovery(lambda: self._recovery.want_all(now), now)
        self._supplier.progress()

    def _on_look(self, now: int) -> None:
        """Fetch what is surely lost, while the rest is still on its way."""
        lost = self._overtaken.look()
        self._try_recovery(lambda: self._want(lost, now), now)
        self._supplier.progress()
        if self.phase is Phase.MULTICAST:
            self._timers.set(Timer.LOOK, now + self._s.timing.look_ns)

    def _on_patience(self, now: int) -> None:
        if self.phase is Phase.HANDSHAKE:
            self._probe([] if self._right_finished else [self._right], now)
            return
        patience, heard_at = self._s.timing.patience_ns, self._s.heard_at
        self._try_recovery(lambda: self._recovery.impatient(now, patience, heard_at), now)

    def _want(self, lost: Flags, now: int) -> None:
        self._s.counters["overtaken"] += self._recovery.want(lost, now)

    def _settled(self) -> Flags | None:
        return self._overtaken.settled if self.phase is Phase.MULTICAST else None

    def _try_recovery(self, step: Callable[[], None], now: int) -> None:
        if self.phase not in RECEIVING:
            return
        try:
            step()
        except Exhausted as error:
            self._fail(f"no rank can supply what is missing of rank {error.owner}'s block", error.owner, now)
            return
        if self.phase is not Phase.RECOVERY:
            return
        at = self._recovery.next_impatience(self._s.timing.patience_ns)
        if at is not None:
            self._timers.set(Timer.PATIENCE, max(at, now + 1))

    def _on_deadline(self, now: int) -> None:
        if self.phase is Phase.HANDSHAKE:
            waiting = self._right
            reason = f"final handshake: nothing came from rank {waiting}"
        else:
            waiting = self._roots[self._layout.block_of(self.placement.bitmap.gaps()[0][0])]
            reason = f"{self.placement.bitmap.missing} chunks missing, the first of rank {waiting}'s block"
        self._fail(f"time is up in {self.phase.value}: {reason}", waiting, now)

    # -- departures ---------------------------------------------------------------------------------------------

    def next_departure(self) -> int | None:
        """The own turn's next batch."""
        return None if self._sender is None or self.phase is Phase.FAILED else self._sender.next_at()

    def due_bursts(self, now: int) -> Iterable[UdBurst]:
        """The own multicast, as far as it is due."""
        if self._sender is None or self.phase is Phase.FAILED:
            return
        yield from self._sender.due(now)
        self._pass_token(now)

    def _unsent(self) -> tuple[int, int]:
        """Own chunks that the multicast is still to bring, as (first, stop)."""
        if self._sender is None or self._sender.finished:
            return 0, 0
        first = self._roots.index(self._s.rank) * self._layout.chunks_per_block
        return first + self._sender.sent, first + self._layout.chunks_per_block

    def send_ranges(self, peer: int, kind: Kind, ranges: Ranges) -> None:
        """For the slow path (``slow_path.Wire``)."""
        self._s.counters["fetches"] += kind is Kind.FETCH
        for message in ranges_messages(kind, self.op, ranges, self._s.comm.mtu):
            self._s.send(peer, message)

    def read(self, peer: int, first: int, stop: int) -> None:
        """For the slow path: READ chunks of one block; the context is the first chunk's number."""
        self._s.counters["reads"] += 1
        va, length = self._layout.span(first, stop)
        self._s.read(self.op, peer, va, length, first)
