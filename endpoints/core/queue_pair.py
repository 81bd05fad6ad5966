"""One end of a reliable connection: SEND and RDMA READ with PSNs, ACK, NAK and retransmission (IBTA vol. 1, 9.7).

As IBTA's chapter 9.7 does, it has a requester, whose requests the peer answers, and a responder, which answers the
peer's; each has PSNs of its own. Both repeat selectively, which a plain InfiniBand queue pair does not: ``requester``
and ``responder`` say how.

The machine is sans-I/O: packets and the time go in; packets, events and the next deadline are pulled out.
"""

from __future__ import annotations

from typing import Any

from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.packets import Opcode, RcPacket
from endpoints.core.requester import PeerLost, ReadData, ReadRefused, Requester
from endpoints.core.responder import Memory, MessageArrived, Responder

QpEvent = MessageArrived | ReadData | ReadRefused | PeerLost


class QueuePair:
    """The queue pair of one rank towards ``peer``; both ends start at ``first_psn`` of their direction."""

    def __init__(
        self, peer: int, mtu: int, psns: tuple[int, int], timing: Timing, config: ProtocolConfig, memory: Memory
    ) -> None:
        own_psn, peers_psn = psns
        self.peer = peer
        self._requester = Requester(peer, mtu, own_psn, timing, config.read_window)
        self._responder = Responder(peer, mtu, peers_psn, timing.ack_delay_ns, memory)

    @property
    def failed(self) -> bool:
        """Whether the peer is lost: nothing is taken or sent any more."""
        return self._requester.failed

    @property
    def retransmitted(self) -> int:
        """Requests that were sent again."""
        return self._requester.retransmitted

    # -- the user's side ----------------------------------------------------------------------------------------

    def post_send(self, imm: int, payload: bytes, copies: int = 1) -> None:
        """Queue a SEND with immediate of at most one MTU, which goes out in so many copies at once."""
        self._requester.post_send(imm, payload, copies)

    def post_read(self, va: int, rkey: int, length: int, context: Any) -> None:
        """Queue an RDMA READ; ``context`` comes back with each packet of its data."""
        self._requester.post_read(va, rkey, length, context)

    def next_event(self) -> QpEvent | None:
        """The next thing that happened."""
        return self._responder.next_event() or self._requester.next_event()

    # -- arrivals -----------------------------------------------------------------------------------------------

    def heard(self, now: int) -> None:
        """The peer has sent something, by whatever way: it lives."""
        self._requester.heard(now)

    def receive(self, packet: RcPacket, now: int) -> str | None:
        """Take a packet; returns the reason if it was of no use (``duplicate``, ``stale``, ...)."""
        if self.failed:
            return "connection_lost"
        self.heard(now)
        if packet.opcode is Opcode.RC_ACKNOWLEDGE:
            return self._requester.on_ack(packet, now)
        if Opcode.RC_READ_RESPONSE_FIRST <= packet.opcode <= Opcode.RC_READ_RESPONSE_ONLY:
            return self._requester.on_response(packet, now)
        return self._responder.receive(packet, now)

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timeout(self) -> int | None:
        """When an acknowledgement is owed, or a request is overdue and :meth:`handle_timer` wants to be called."""
        if self.failed:
            return None
        due = (self._responder.next_timeout(), self._requester.next_timeout())
        return min((at for at in due if at is not None), default=None)

    def handle_timer(self, now: int) -> None:
        """Repeat what is overdue, or give the peer up."""
        self._requester.handle_timer(now)

    # -- departures ---------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sent or acknowledged."""
        return self.failed or (self._requester.idle and self._responder.idle)

    def next_control(self, now: int) -> RcPacket | None:
        """The next packet that carries no bulk data: ACKs and NAKs, repeats, new requests."""
        if self.failed:
            return None
        return self._responder.next_answer(now) or self._requester.next_request(now)

    def next_response(self) -> RcPacket | None:
        """The next packet of a READ that the peer requested."""
        return None if self.failed else self._responder.next_response()
