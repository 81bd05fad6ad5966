"""One end of a reliable connection: SEND and RDMA READ with PSNs, ACK, NAK and retransmission (IBTA vol. 1, 9.7).

Three places where this differs from a plain InfiniBand queue pair; the first two are IRN's selective repeat (Mittal
et al., SIGCOMM'18, section 3), for go-back-N at a few per cent of loss sends everything several times:

- A responder keeps requests that come early (SENDs wait, READs are executed) and its NAK asks for the missing one.
- READ responses are taken in any order and only what is missing is requested again, as a duplicate request for part
  of the range (which IBTA 9.7.5.1.4 lets a responder execute).
- A remote access error ends the one READ that met it and not the queue pair: a supplier that has finished an
  operation is no fault of the connection.

The machine is sans-I/O: packets and the time go in; packets, events and the next deadline are pulled out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.packets import U8, Aeth, Opcode, RcPacket, Reth
from endpoints.core.rto import RetransmissionTimeout
from endpoints.core.serial import PSN_BITS, PSN_MASK, unwrap

ACK = 0x1F
"""Syndrome of an ACK without credit information (IBTA table 44)."""
NAK_SEQUENCE = 0x60
NAK_REMOTE_ACCESS = 0x62

PROBES = 8
"""Requests that are repeated when nothing is answered: one alone is lost too easily where a third of all packets is."""

DEAF = 3
"""Peer timeouts after which a peer counts as lost that sends but does not answer."""

EARLY_LIMIT = 256
"""Requests that a responder keeps when they come before their turn."""

Memory = Callable[[int, int, int], "U8 | None"]
"""(rkey, va, length) -> the registered bytes, None where access is refused."""


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A SEND was received, in order and once."""

    imm: int
    payload: bytes


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


QpEvent = MessageArrived | ReadData | ReadRefused | PeerLost


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
    overtaken_at: int | None = None
    got: set[int] = field(default_factory=set)

    @property
    def stop(self) -> int:
        return self.psn + self.count


@dataclass(slots=True)
class _Response:
    """What is left to send of a READ that the peer requested: packets ``next .. stop - 1`` of ``count``."""

    psn: int
    reth: Reth
    count: int
    next: int = 0


class QueuePair:
    """The queue pair of one rank towards ``peer``; both ends start at ``first_psn`` of their direction."""

    def __init__(
        self, peer: int, mtu: int, psns: tuple[int, int], timing: Timing, config: ProtocolConfig, memory: Memory
    ) -> None:
        self.peer = peer
        self.failed = False
        self.retransmitted = 0
        self._mtu = mtu
        self._timing = timing
        self._window = config.read_window
        self._memory = memory
        self._rto = RetransmissionTimeout(timing.initial_rto_ns, timing.min_rto_ns)
        self._next_psn, self._expected = psns
        self._pending: deque[_Work] = deque()
        self._inflight: deque[_Work] = deque()
        self._progress_at = 0
        self._heard_at = 0
        self._timer_from = 0
        self._order = 0
        self._early: dict[int, RcPacket] = {}
        self._out: deque[RcPacket] = deque()
        self._responses: deque[_Response] = deque()
        self._ack_at: int | None = None
        self._nak_sent = False
        self._events: deque[QpEvent] = deque()

    # -- the user's side ----------------------------------------------------------------------------------------

    def post_send(self, imm: int, payload: bytes, copies: int = 1) -> None:
        """Queue a SEND with immediate of at most one MTU, which goes out in so many copies at once."""
        self._pending.append(_Work(0, 1, imm, payload, copies))

    def post_read(self, va: int, rkey: int, length: int, context: Any) -> None:
        """Queue an RDMA READ; ``context`` comes back with each packet of its data."""
        self._pending.append(_Work(0, self._packets(length), reth=Reth(va, rkey, length), context=context))

    def next_event(self) -> QpEvent | None:
        """The next thing that happened."""
        return self._events.popleft() if self._events else None

    # -- arrivals -----------------------------------------------------------------------------------------------

    def heard(self, now: int) -> None:
        """The peer has sent something, by whatever way: it lives."""
        self._heard_at = now

    def receive(self, packet: RcPacket, now: int) -> str | None:
        """Take a packet; returns the reason if it was of no use (``duplicate``, ``stale``, ...)."""
        if self.failed:
            return "connection_lost"
        self.heard(now)
        if packet.opcode is Opcode.RC_ACKNOWLEDGE:
            return self._on_ack(packet, now)
        if Opcode.RC_READ_RESPONSE_FIRST <= packet.opcode <= Opcode.RC_READ_RESPONSE_ONLY:
            return self._on_response(packet, now)
        return self._on_request(packet, now)

    def _on_request(self, packet: RcPacket, now: int) -> str | None:
        if packet.opcode not in (Opcode.RC_READ_REQUEST, Opcode.RC_SEND_ONLY_IMM):
            return "unsupported_opcode"
        psn = unwrap(packet.psn, self._expected, PSN_BITS)
        if psn < self._expected:
            self._execute(packet, psn, now, first_time=False)
            return "duplicate"
        if psn > self._expected:
            return self._keep(packet, psn)
        self._execute(packet, psn, now, first_time=True)
        self._nak_sent = False
        while (early := self._early.pop(self._expected, None)) is not None:
            if early.reth is not None:
                self._expected += self._packets(early.reth.length)  # it was served when it came
            else:
                self._execute(early, self._expected, now, first_time=True)
        if self._early:
            self._nak()
        return None

    def _keep(self, packet: RcPacket, psn: int) -> str:
        """A request came before its turn: serve a READ at once, keep a SEND, ask for what is missing before it."""
        known = psn in self._early or any(
            kept.reth is not None and first < psn < first + self._packets(kept.reth.length)
            for first, kept in self._early.items()
        )
        if not known and len(self._early) >= EARLY_LIMIT:
            return "too_early"
        if packet.reth is not None:
            self._serve(_Response(psn, packet.reth, self._packets(packet.reth.length)))
        if known:
            return "duplicate"
        packet.payload = bytes(packet.payload)
        self._early[psn] = packet
        self._nak()
        return "out_of_sequence"

    def _nak(self) -> None:
        if not self._nak_sent:
            self._nak_sent = True
            self._out.append(self._acknowledge(self._expected, NAK_SEQUENCE))

    def _execute(self, packet: RcPacket, psn: int, now: int, *, first_time: bool) -> None:
        if packet.reth is not None:
            count = self._packets(packet.reth.length)
            if first_time:
                self._expected = psn + count
            self._serve(_Response(psn, packet.reth, count))
            return
        # A duplicate after the acknowledgement tells that it was lost or too late: the next one goes at once.
        late = not first_time and self._ack_at is None
        at = now if late else now + self._timing.ack_delay_ns
        self._ack_at = at if self._ack_at is None else min(self._ack_at, at)
        if first_time and packet.imm is not None:
            self._expected = psn + 1
            self._events.append(MessageArrived(packet.imm, bytes(packet.payload)))

    def _packets(self, length: int) -> int:
        return max(1, -(-length // self._mtu))

    def _serve(self, response: _Response) -> None:
        if any(r.psn <= response.psn < r.psn + r.count and r.psn + r.next <= response.psn for r in self._responses):
            return  # still to be sent anyway
        self._responses.append(response)

    def _on_ack(self, packet: RcPacket, now: int) -> str | None:
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
        return None if self._acknowledged(psn, now) else "duplicate"

    def _acknowledged(self, psn: int, now: int) -> bool:
        """SENDs up to ``psn`` have arrived; READs complete by their data alone."""
        done = [work for work in self._inflight if work.reth is None and work.psn <= psn]
        for work in done:
            if work.attempts == 1:
                self._rto.sample(now - work.sent_at)
            self._inflight.remove(work)
        if done:
            self._progressed(now)
        return bool(done)

    def _refused(self, psn: int) -> str | None:
        for work in self._inflight:
            if work.reth is not None and work.psn <= psn < work.stop:
                self._inflight.remove(work)
                self._events.append(ReadRefused(work.context))
                return None
        return "stale"

    def _on_response(self, packet: RcPacket, now: int) -> str | None:
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
            late = other.order < work.order if other is not work else len(work.got) <= index
            if late and other.reth is not None and other.overtaken_at is None:
                other.overtaken_at = now

    def _progressed(self, now: int) -> None:
        self._progress_at = now
        self._timer_from = now
        self._rto.progress()

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timeout(self) -> int | None:
        """When :meth:`handle_timer` wants to be called: the oldest request's retransmission, or None."""
        if self.failed:
            return None
        return min(self._deadlines(), default=None)

    def _deadlines(self) -> Iterator[int]:
        """Of the acknowledgement that is owed, of the oldest request, and of what has been overtaken."""
        if self._ack_at is not None:
            yield self._ack_at
        if self._inflight:
            yield self._timer_from + self._rto.current()
        for work in self._inflight:
            if work.overtaken_at is not None:
                yield work.overtaken_at + self._timing.reorder_ns

    def handle_timer(self, now: int) -> None:
        """Repeat what is overdue, or give the peer up.

        When nothing at all is answered only the oldest requests are repeated (RFC 6298, 5.4, repeats one): their
        answers will show what else is missing, and if the peer is merely slow little was in vain.
        """
        if self.failed or not self._inflight:
            return
        reorder = self._timing.reorder_ns
        late = [w for w in self._inflight if w.overtaken_at is not None and w.overtaken_at + reorder <= now]
        if now >= self._timer_from + self._rto.current():
            if self._is_lost(now):
                self._fail()
                return
            self._rto.expired()
            self._timer_from = now
            oldest = sorted(self._inflight, key=lambda work: work.order)[:PROBES]
            late += [work for work in oldest if work not in late]
        for work in late:
            self._repeat(work, now)

    def _is_lost(self, now: int) -> bool:
        """Nothing is answered and nothing comes: dead. Nothing is answered although something comes: it is deaf."""
        stalled, silent = now - self._progress_at, now - self._heard_at
        timeout = self._timing.peer_timeout_ns
        return (stalled >= timeout and silent >= timeout) or stalled >= DEAF * timeout

    def _fail(self) -> None:
        self.failed = True
        self._pending.clear()
        self._inflight.clear()
        self._out.clear()
        self._responses.clear()
        self._ack_at = None
        self._events.append(PeerLost())

    # -- departures ---------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sent or acknowledged."""
        return not (self._pending or self._inflight or self._out or self._responses or self._ack_at is not None)

    def next_control(self, now: int) -> RcPacket | None:
        """The next packet that carries no bulk data: ACKs, repeats, new requests."""
        if self._ack_at is not None and self._ack_at <= now:
            self._ack_at = None
            return self._acknowledge(self._expected - 1, ACK)
        if not self._out and self._pending and self._fits(self._pending[0]):
            self._issue(self._pending.popleft(), now)
        return self._out.popleft() if self._out else None

    def next_response(self) -> RcPacket | None:
        """The next packet of a READ that the peer requested."""
        if not self._responses:
            return None
        response = self._responses[0]
        reth, index = response.reth, response.next
        memory = self._memory(reth.rkey, reth.va, reth.length)
        if memory is None:
            self._responses.popleft()
            return self._acknowledge(response.psn, NAK_REMOTE_ACCESS)
        response.next += 1
        if response.next == response.count:
            self._responses.popleft()
        first, last = index == 0, index == response.count - 1
        opcode = _RESPONSE_OPCODE[first, last]
        return RcPacket(
            opcode,
            self.peer,
            (response.psn + index) & PSN_MASK,
            aeth=None if opcode is Opcode.RC_READ_RESPONSE_MIDDLE else Aeth(ACK, self._expected & PSN_MASK),
            payload=memory[index * self._mtu : (index + 1) * self._mtu],
        )

    def _fits(self, work: _Work) -> bool:
        if work.reth is None:
            return True
        outstanding = sum(w.count - len(w.got) for w in self._inflight if w.reth is not None)
        return outstanding == 0 or outstanding + work.count <= self._window

    def _issue(self, work: _Work, now: int) -> None:
        if not self._inflight:
            self._progress_at = now  # the peer's time to answer starts here
            self._timer_from = now
        work.psn = self._next_psn
        self._next_psn += work.count
        self._inflight.append(work)
        self._repeat(work, now)

    def _repeat(self, work: _Work, now: int) -> None:
        self.retransmitted += work.attempts > 0
        work.attempts += 1
        work.sent_at = now
        work.overtaken_at = None
        self._order += 1
        work.order = self._order
        self._out.extend(self._requests(work))

    def _requests(self, work: _Work) -> Iterator[RcPacket]:
        """The packet of a SEND; for a READ one request for each run of packets that is still missing."""
        if work.reth is None:
            psn = work.psn & PSN_MASK
            for _ in range(work.copies):
                yield RcPacket(Opcode.RC_SEND_ONLY_IMM, self.peer, psn, True, imm=work.imm, payload=work.payload)
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
            yield RcPacket(Opcode.RC_READ_REQUEST, self.peer, (work.psn + index) & PSN_MASK, True, reth=part)
            index = stop

    def _acknowledge(self, psn: int, syndrome: int) -> RcPacket:
        aeth = Aeth(syndrome, self._expected & PSN_MASK)
        return RcPacket(Opcode.RC_ACKNOWLEDGE, self.peer, psn & PSN_MASK, aeth=aeth)


_RESPONSE_OPCODE = {
    (True, True): Opcode.RC_READ_RESPONSE_ONLY,
    (True, False): Opcode.RC_READ_RESPONSE_FIRST,
    (False, False): Opcode.RC_READ_RESPONSE_MIDDLE,
    (False, True): Opcode.RC_READ_RESPONSE_LAST,
}
