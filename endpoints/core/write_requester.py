"""The sending side of a bulk connection: RDMA WRITEs with coalesced ACKs and selective repeat.

PSNs, ACK and NAK are those of IBTA vol. 1, 9.7. As in ``requester`` the recovery is IRN's selective repeat (Mittal et
al., SIGCOMM'18, section 3): a NAK names one packet that is missing, and only that one is sent again. Each
acknowledgement brings, in the place of the message number, which nobody needs on a connection whose receiver has no
receive queue to run dry, the highest PSN that has come: a repeat that was overtaken by ``OVERTAKEN`` newer packets was
lost, too (RFC 8985's idea), and need not wait for a timeout.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

from endpoints.core.config import Timing
from endpoints.core.liveness import Liveness
from endpoints.core.packets import NAK_REMOTE_ACCESS, NAK_SEQUENCE, U8, RcPacket, Reth, WriteBurst, packets_of
from endpoints.core.rto import RetransmissionTimeout
from endpoints.core.serial import PSN_BITS, PSN_MASK, unwrap

OVERTAKEN = 3
"""Packets that must have overtaken another for it to count as lost and not as reordered (RFC 5681, 3.2)."""

ACKS_PER_WINDOW = 8
"""Acknowledgements that are asked for in a window, beside the one of a stream's last packet."""

PROBES = 4
"""Packets that are repeated when nothing is answered."""


@dataclass(slots=True)
class _Message:
    psn: int
    count: int
    reth: Reth
    imm: int
    payload: U8

    @property
    def stop(self) -> int:
        return self.psn + self.count


class WriteRequester:
    """WRITEs to ``peer``; ``first_psn`` is known to both ends. PSNs count up for ever inside."""

    def __init__(self, peer: int, mtu: int, first_psn: int, timing: Timing) -> None:
        self.peer = peer
        self.failed = False
        self.refused: set[int] = set()
        """Keys of the memory that the peer does not expose any more: it refused a WRITE there."""
        self.repeated = 0
        self._mtu = mtu
        self._ask_every = max(1, timing.write_window // ACKS_PER_WINDOW)
        # Bulk data and its acknowledgement wait in an uplink each and in the switches, behind other bulk data.
        waits_ns = 4 * timing.uplink_ns
        self._rto = RetransmissionTimeout(timing.initial_rto_ns + waits_ns, timing.min_rto_ns + timing.uplink_ns)
        self._next = self._una = first_psn
        """The PSN to use next, and the oldest that is not acknowledged."""
        self._unasked = 0
        self._messages: deque[_Message] = deque()
        self._never: set[int] = set()
        """Keys of the memory to which WRITEs were under way when the peer was given up."""
        self._lost: dict[int, int | None] = {}
        """Packets that the peer misses, and the next new PSN when each was repeated (None: it is still to be)."""
        self._timed: tuple[int, int] | None = None
        self._liveness = Liveness(timing.peer_timeout_ns)
        self._timer_from = 0

    # -- the user's side ----------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether everything is acknowledged."""
        return self._una == self._next

    def acknowledged(self, rkey: int) -> bool:
        """Whether every WRITE into that memory is; never if the peer was given up before it was."""
        return rkey not in self._never and all(message.reth.rkey != rkey for message in self._messages)

    @property
    def under_way(self) -> int:
        """Packets that are not acknowledged; none counts where nobody will."""
        return 0 if self.failed else self._next - self._una

    def write(self, reth: Reth, imm: int, payload: U8, now: int, *, ask: bool) -> WriteBurst:
        """The WRITE of ``payload``, to be sent at once; ``ask`` if nothing follows it soon."""
        if self.idle:
            self._liveness.answered(now)
            self._timer_from = now
        message = _Message(self._next, packets_of(len(payload), self._mtu), reth, imm, payload)
        self._messages.append(message)
        self._next = message.stop
        self._unasked += message.count
        ask = ask or self._unasked >= self._ask_every
        if ask:
            self._unasked = 0
            if self._timed is None:
                self._timed = message.stop - 1, now
        return self._burst(message, 0, message.count, ask=ask)

    def _burst(self, message: _Message, first: int, stop: int, *, ask: bool) -> WriteBurst:
        psn = message.psn & PSN_MASK
        return WriteBurst(self.peer, psn, message.reth, message.imm, message.payload, first, stop, ask)

    def _message_of(self, psn: int) -> _Message:
        """The one that a packet belongs to which is not acknowledged."""
        return self._messages[bisect_right(self._messages, psn, key=lambda message: message.psn) - 1]

    # -- arrivals -----------------------------------------------------------------------------------------------

    def heard(self, now: int) -> None:
        """The peer has sent something, by whatever way: it lives."""
        self._liveness.heard(now)

    def receive(self, packet: RcPacket, now: int) -> str | None:
        """Take an ACK or NAK; returns the reason if it was of no use."""
        if self.failed:
            return "connection_lost"
        if packet.aeth is None:
            return "unsupported_opcode"
        psn = unwrap(packet.psn, self._una, PSN_BITS)
        if psn >= self._next:
            return "stale"
        if packet.aeth.syndrome in (NAK_SEQUENCE, NAK_REMOTE_ACCESS):
            if psn < self._una:
                return "stale"
            if packet.aeth.syndrome == NAK_SEQUENCE:
                self._lost.setdefault(psn, None)
            else:
                self.refused.add(self._message_of(psn).reth.rkey)
            return None
        new = psn >= self._una
        if new:
            self._acknowledged(psn + 1, now)
        self._note_overtaken(unwrap(packet.aeth.msn, self._una, PSN_BITS))
        return None if new else "duplicate"

    def _acknowledged(self, una: int, now: int) -> None:
        if self._timed is not None and self._timed[0] < una:
            self._rto.sample(now - self._timed[1])
            self._timed = None
        self._una = una
        while self._messages and self._messages[0].stop <= una:
            self._messages.popleft()
        self._lost = {psn: at for psn, at in self._lost.items() if psn >= una}
        self._liveness.answered(now)
        self._timer_from = now
        self._rto.progress()

    def _note_overtaken(self, highest: int) -> None:
        """Repeats that newer packets have overtaken are lost again."""
        for psn, newest in self._lost.items():
            if newest is not None and highest >= newest + OVERTAKEN:
                self._lost[psn] = None

    # -- departures ---------------------------------------------------------------------------------------------

    def next_repeat(self) -> WriteBurst | None:
        """The next packet to send again."""
        psn = next((psn for psn, repeated in self._lost.items() if repeated is None), None)
        if psn is None:
            return None
        self._lost[psn] = self._next
        self._timed = None  # Karn: what was sent twice tells no round trip
        self.repeated += 1
        message = self._message_of(psn)
        index = psn - message.psn
        return self._burst(message, index, index + 1, ask=True)

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timeout(self) -> int | None:
        """When the oldest packet is overdue."""
        return None if self.failed or self.idle else self._timer_from + self._rto.current()

    def handle_timer(self, now: int) -> bool:
        """Repeat the oldest packets if nothing is answered; true if the peer is given up now."""
        due = self.next_timeout()
        if due is None or now < due:
            return False
        if self._liveness.lost(now):
            self.failed = True
            self._never = {message.reth.rkey for message in self._messages}
            self._messages.clear()
            self._lost.clear()
            return True
        self._rto.expired()
        self._timer_from = now
        # What is known to be lost was repeated, too, and nothing newer can tell that those repeats were lost again.
        oldest = range(self._una, min(self._next, self._una + PROBES))
        self._lost = dict.fromkeys(sorted({*oldest, *self._lost}))
        return False
