"""The requesting side of a queue pair: SENDs and RDMA READs in flight, until answered (IBTA vol. 1, 9.7.3 to 9.7.6).

READ responses are taken in any order, and only what is missing is requested again, as a duplicate request for part of
the range (which IBTA 9.7.5.1.4 lets a responder execute): the selective repeat of IRN (Mittal et al., SIGCOMM'18,
section 3), for go-back-N at a few per cent of loss sends everything several times. A request counts as lost once one
that was sent later has been answered and a reordering time has passed, a part of the measured round trip (RFC 8985).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from endpoints.core.config import Timing
from endpoints.core.liveness import Liveness
from endpoints.core.packets import NAK_REMOTE_ACCESS, NAK_SEQUENCE, U8, Opcode, RcPacket, Reth, packets_of
from endpoints.core.rto import RetransmissionTimeout
from endpoints.core.serial import PSN_BITS, PSN_MASK, unwrap

PROBES = 8
"""Requests that are repeated when nothing is answered: one alone is lost too easily where a third of all packets is."""


@dataclass(frozen=True, slots=True)
class ReadData:
    """One packet of a READ: the bytes from ``index * mtu`` on of what ``context`` asked for."""

    context: Any
    index: int
    payload: U8


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """The peer refused a READ (remote access error)."""

    context: Any


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The peer did not answer and sent nothing for the peer timeout; the queue pair is in error."""


@dataclass(slots=True)
class _Work:
    """A request in flight: PSNs ``psn .. psn + count - 1``. SENDs have ``reth`` None and a count of 1."""

    psn: int
    count: int
    imm: int = 0
    payload: bytes = b""
    copies: int = 1
    reth: Reth | None = None
    context: Any = None
    sent_at: int = 0
    attempts: int = 0
    order: int = 0
    late_at: int | None = None
    """When it counts as lost, since something that was sent later has been answered."""
    got: set[int] = field(default_factory=set)

    @property
    def stop(self) -> int:
        return self.psn + self.count


class Requester:
    """Requests to ``peer``, of which at most ``window`` packets of READs are outstanding. PSNs count up for ever."""

    def __init__(self, peer: int, mtu: int, first_psn: int, timing: Timing, window: int) -> None:
        self.failed = False
        self.retransmitted = 0
        self._peer = peer
        self._mtu = mtu
        self._reorder_ns = timing.reorder_ns
        self._window = window
        self._rto = RetransmissionTimeout(timing.initial_rto_ns, timing.min_rto_ns, timing.reorder_ns)
        self._liveness = Liveness(timing.peer_timeout_ns)
        self._next_psn = first_psn
        self._pending: deque[_Work] = deque()
        self._inflight: deque[_Work] = deque()
        self._timer_from = 0
        self._order = 0
        self._out: deque[RcPacket] = deque()
        self._events: deque[ReadData | ReadRefused | PeerLost] = deque()

    # -- the user's side ----------------------------------------------------------------------------------------

    def post_send(self, imm: int, payload: bytes, copies: int) -> None:
        """Queue a SEND, which goes out in so many copies at once."""
        self._pending.append(_Work(0, 1, imm, payload, copies))

    def post_read(self, va: int, rkey: int, length: int, context: Any) -> None:
        """Queue an RDMA READ; ``context`` comes back with each packet of its data."""
        self._pending.append(_Work(0, packets_of(length, self._mtu), reth=Reth(va, rkey, length), context=context))

    def next_event(self) -> ReadData | ReadRefused | PeerLost | None:
        """The next thing that happened."""
        return self._events.popleft() if self._events else None

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sent or answered."""
        return not (self._pending or self._inflight or self._out)

    # -- arrivals -----------------------------------------------------------------------------------------------

    def heard(self, now: int) -> None:
        """The peer has sent something, by whatever way: it lives."""
        self._liveness.heard(now)

    def on_ack(self, packet: RcPacket, now: int) -> str | None:
        """Take an ACK or NAK; returns the reason if it was of no use."""
        if packet.aeth is None:
            return "unsupported_opcode"
        psn = unwrap(packet.psn, self._next_psn, PSN_BITS)
        if psn >= self._next_psn:
            return "stale"
        if packet.aeth.syndrome == NAK_SEQUENCE:
            self._acknowledged(psn - 1, now)
            wanted = next((work for work in self._inflight if work.psn <= psn < work.stop), None)
            if wanted is None:
                return "stale"
            self._repeat(wanted, now)
            return None
        if packet.aeth.syndrome == NAK_REMOTE_ACCESS:
            return self._refused(psn)
        useful = self._acknowledged(psn, now)
        kept = unwrap(packet.aeth.msn, self._next_psn, PSN_BITS)
        if kept > psn + 1:
            useful |= self._kept(kept, now)
        return None if useful else "duplicate"

    def _acknowledged(self, psn: int, now: int) -> bool:
        """SENDs up to ``psn`` have arrived; READs complete by their data alone."""
        return self._arrived([work for work in self._inflight if work.reth is None and work.psn <= psn], now)

    def _kept(self, psn: int, now: int) -> bool:
        """The SEND ``psn`` has arrived before its turn: what was sent before it is lost, or reordered a little."""
        work = next((work for work in self._inflight if work.reth is None and work.psn == psn), None)
        if work is None:
            return False
        for other in self._inflight:
            # Of a READ it says nothing: its data may wait, where an acknowledgement does not.
            if other.reth is None and other.order < work.order:
                self._count_as_lost(other, now + self._rto.reordering())
        return self._arrived([work], now)

    def _arrived(self, done: list[_Work], now: int) -> bool:
        for work in done:
            if work.attempts == 1:
                self._rto.sample(now - work.sent_at)
            self._inflight.remove(work)
        if done:
            self._progressed(now)
        return bool(done)

    @staticmethod
    def _count_as_lost(work: _Work, at: int) -> None:
        work.late_at = at if work.late_at is None else min(work.late_at, at)

    def _refused(self, psn: int) -> str | None:
        """A remote access error ends the one READ that met it and not the queue pair."""
        for work in self._inflight:
            if work.reth is not None and work.psn <= psn < work.stop:
                self._inflight.remove(work)
                self._events.append(ReadRefused(work.context))
                return None
        return "stale"

    def on_response(self, packet: RcPacket, now: int) -> str | None:
        """Take a packet of a READ; returns the reason if it was of no use."""
        psn = unwrap(packet.psn, self._next_psn, PSN_BITS)
        work = next((w for w in self._inflight if w.reth is not None and w.psn <= psn < w.stop), None)
        if work is None or work.reth is None:
            self._rto.premature(now)
            return "stale"
        index = psn - work.psn
        if index in work.got:
            self._rto.premature(now)
            return "duplicate"
        if len(packet.payload) != min(self._mtu, work.reth.length - index * self._mtu):
            return "wrong_length"
        if not work.got and work.attempts == 1:
            self._rto.sample(now - work.sent_at)
        work.got.add(index)
        self._note_overtaken(work, index, now)
        # No word on earlier SENDs: a READ may have been executed before its turn.
        self._progressed(now)
        self._events.append(ReadData(work.context, index, packet.payload))  # type: ignore[arg-type]
        if len(work.got) == work.count:
            self._inflight.remove(work)
        return None

    def _note_overtaken(self, work: _Work, index: int, now: int) -> None:
        """Packets requested before this one and still missing are late: lost, or reordered a little (RFC 8985)."""
        for other in self._inflight:
            if other.order < work.order if other is not work else len(work.got) <= index:
                # The acknowledgement of a SEND may be held back, data is not.
                window = self._reorder_ns if other.reth is None else self._rto.reordering()
                self._count_as_lost(other, now + window)

    def _progressed(self, now: int) -> None:
        self._liveness.answered(now)
        self._timer_from = now
        self._rto.progress()

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timeout(self) -> int | None:
        """When :meth:`handle_timer` wants to be called: the oldest request is overdue, or one that was overtaken."""
        return None if self.failed else min(self._deadlines(), default=None)

    def _deadlines(self) -> Iterator[int]:
        if self._inflight:
            yield self._timer_from + self._rto.current()
        for work in self._inflight:
            if work.late_at is not None:
                yield work.late_at

    def handle_timer(self, now: int) -> None:
        """Repeat what is overdue, or give the peer up.

        When nothing at all is answered only the oldest requests are repeated (RFC 6298, 5.4, repeats one): their
        answers will show what else is missing, and if the peer is merely slow little was in vain.
        """
        if self.failed or not self._inflight:
            return
        late = [work for work in self._inflight if work.late_at is not None and work.late_at <= now]
        if now >= self._timer_from + self._rto.current():
            if self._liveness.lost(now):
                self._fail()
                return
            self._rto.expired()
            self._timer_from = now
            oldest = sorted(self._inflight, key=lambda work: work.order)[:PROBES]
            late += [work for work in oldest if work not in late]
        for work in late:
            self._repeat(work, now)

    def _fail(self) -> None:
        self.failed = True
        self._pending.clear()
        self._inflight.clear()
        self._out.clear()
        self._events.append(PeerLost())

    # -- departures ---------------------------------------------------------------------------------------------

    def next_request(self, now: int) -> RcPacket | None:
        """The next packet: repeats, then new requests as far as the window lets them."""
        if not self._out and self._pending and self._fits(self._pending[0]):
            self._issue(self._pending.popleft(), now)
        return self._out.popleft() if self._out else None

    def _fits(self, work: _Work) -> bool:
        if work.reth is None:
            return True
        outstanding = sum(w.count - len(w.got) for w in self._inflight if w.reth is not None)
        return outstanding == 0 or outstanding + work.count <= self._window

    def _issue(self, work: _Work, now: int) -> None:
        if not self._inflight:
            self._liveness.answered(now)
            self._timer_from = now
        work.psn = self._next_psn
        self._next_psn += work.count
        self._inflight.append(work)
        self._repeat(work, now)

    def _repeat(self, work: _Work, now: int) -> None:
        self.retransmitted += work.attempts > 0
        work.attempts += 1
        work.sent_at = now
        work.late_at = None
        self._order += 1
        work.order = self._order
        self._out.extend(self._packets(work))

    def _packets(self, work: _Work) -> Iterator[RcPacket]:
        """The packet of a SEND; for a READ one request for each run of packets that is still missing."""
        if work.reth is None:
            psn = work.psn & PSN_MASK
            for _ in range(work.copies):
                yield RcPacket(Opcode.RC_SEND_ONLY_IMM, self._peer, psn, True, imm=work.imm, payload=work.payload)
            return
        index = 0
        while index < work.count:
            if index in work.got:
                index += 1
                continue
            stop = index
            while stop < work.count and stop not in work.got:
                stop += 1
            start = index * self._mtu
            part = Reth(work.reth.va + start, work.reth.rkey, min(work.reth.length, stop * self._mtu) - start)
            yield RcPacket(Opcode.RC_READ_REQUEST, self._peer, (work.psn + index) & PSN_MASK, True, reth=part)
            index = stop
