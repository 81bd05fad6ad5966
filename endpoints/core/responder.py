"""The responding side of a queue pair: requests in order, once; ACK, NAK, READ responses (IBTA vol. 1, 9.7.1, 9.7.5).

Unlike a plain InfiniBand responder it keeps requests that come early (SENDs wait, READs are executed), and its NAK asks
for the missing one: the selective repeat of IRN (Mittal et al., SIGCOMM'18, section 3). A SEND that is kept is
acknowledged by itself: the ACK's PSN says what has come without a gap, as ever, and its message number, which is the
next PSN otherwise and which nobody needs, the PSN that is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from endpoints.core.packets import (
    ACK,
    NAK_REMOTE_ACCESS,
    NAK_SEQUENCE,
    U8,
    Aeth,
    Opcode,
    RcPacket,
    Reth,
    packets_of,
    read_response_opcode,
)
from endpoints.core.serial import PSN_BITS, PSN_MASK, unwrap

EARLY_LIMIT = 256
"""Requests that are kept when they come before their turn."""

Memory = Callable[[int, int, int], "U8 | None"]
"""(rkey, va, length) -> the registered bytes, None where access is refused."""


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A SEND was received, in order and once."""

    imm: int
    payload: bytes


@dataclass(slots=True)
class _Response:
    """What is left to send of a READ that the peer requested: packets ``next .. count - 1``."""

    psn: int
    reth: Reth
    count: int
    next: int = 0


class Responder:
    """Requests of ``peer``, to what ``memory`` exposes; an ACK may wait for ``ack_delay_ns``."""

    def __init__(self, peer: int, mtu: int, first_psn: int, ack_delay_ns: int, memory: Memory) -> None:
        self._peer = peer
        self._mtu = mtu
        self._ack_delay_ns = ack_delay_ns
        self._memory = memory
        self._expected = first_psn
        self._early: dict[int, RcPacket] = {}
        self._responses: deque[_Response] = deque()
        self._ack_at: int | None = None
        self._nak_sent = False
        self._naks: deque[RcPacket] = deque()
        self._events: deque[MessageArrived] = deque()

    # -- arrivals -----------------------------------------------------------------------------------------------

    def receive(self, packet: RcPacket, now: int) -> str | None:
        """Take a request; returns the reason if it was of no use (``duplicate``, ``out_of_sequence``, ...)."""
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
                self._expected += packets_of(early.reth.length, self._mtu)  # it was served when it came
            else:
                self._execute(early, self._expected, now, first_time=True)
        if self._early:
            self._nak()
        return None

    def _keep(self, packet: RcPacket, psn: int) -> str:
        """A request came before its turn: serve a READ at once, keep a SEND, ask for what is missing before it."""
        known = psn in self._early or any(
            kept.reth is not None and first < psn < first + packets_of(kept.reth.length, self._mtu)
            for first, kept in self._early.items()
        )
        if not known and len(self._early) >= EARLY_LIMIT:
            return "too_early"
        if packet.reth is not None:
            self._serve(_Response(psn, packet.reth, packets_of(packet.reth.length, self._mtu)))
        else:
            self._naks.append(self._answer(self._expected - 1, ACK, psn))
        if known:
            return "duplicate"
        packet.payload = bytes(packet.payload)
        self._early[psn] = packet
        self._nak()
        return "out_of_sequence"

    def _nak(self) -> None:
        if not self._nak_sent:
            self._nak_sent = True
            self._naks.append(self._answer(self._expected, NAK_SEQUENCE))

    def _execute(self, packet: RcPacket, psn: int, now: int, *, first_time: bool) -> None:
        if packet.reth is not None:
            count = packets_of(packet.reth.length, self._mtu)
            if first_time:
                self._expected = psn + count
            self._serve(_Response(psn, packet.reth, count))
            return
        # A duplicate after the acknowledgement tells that it was lost or too late: the next one goes at once.
        late = not first_time and self._ack_at is None
        at = now if late else now + self._ack_delay_ns
        self._ack_at = at if self._ack_at is None else min(self._ack_at, at)
        if first_time and packet.imm is not None:
            self._expected = psn + 1
            self._events.append(MessageArrived(packet.imm, bytes(packet.payload)))

    def _serve(self, response: _Response) -> None:
        if any(r.psn <= response.psn < r.psn + r.count and r.psn + r.next <= response.psn for r in self._responses):
            return  # still to be sent anyway
        self._responses.append(response)

    def next_event(self) -> MessageArrived | None:
        """The next message."""
        return self._events.popleft() if self._events else None

    # -- departures ---------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing is left to answer."""
        return not (self._naks or self._responses or self._ack_at is not None)

    def next_timeout(self) -> int | None:
        """When an acknowledgement is due."""
        return self._ack_at

    def next_answer(self, now: int) -> RcPacket | None:
        """The acknowledgement that is due, or the next NAK."""
        if self._ack_at is not None and self._ack_at <= now:
            self._ack_at = None
            return self._answer(self._expected - 1, ACK)
        return self._naks.popleft() if self._naks else None

    def next_response(self) -> RcPacket | None:
        """The next packet of a READ that the peer requested."""
        if not self._responses:
            return None
        response = self._responses[0]
        reth, index = response.reth, response.next
        memory = self._memory(reth.rkey, reth.va, reth.length)
        if memory is None:
            self._responses.popleft()
            return self._answer(response.psn, NAK_REMOTE_ACCESS)
        response.next += 1
        if response.next == response.count:
            self._responses.popleft()
        opcode = read_response_opcode(index, response.count)
        return RcPacket(
            opcode,
            self._peer,
            (response.psn + index) & PSN_MASK,
            aeth=None if opcode is Opcode.RC_READ_RESPONSE_MIDDLE else Aeth(ACK, self._expected & PSN_MASK),
            payload=memory[index * self._mtu : (index + 1) * self._mtu],
        )

    def _answer(self, psn: int, syndrome: int, kept: int | None = None) -> RcPacket:
        """``kept`` is the PSN of a SEND that came before its turn."""
        aeth = Aeth(syndrome, (self._expected if kept is None else kept) & PSN_MASK)
        return RcPacket(Opcode.RC_ACKNOWLEDGE, self._peer, psn & PSN_MASK, aeth=aeth)
