"""An endpoint's bulk connections: one pair of requester and responder for each peer that data goes to or comes from."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from endpoints.core.config import Timing
from endpoints.core.packets import U8, RcPacket, Reth, WriteBurst, Writes, packets_of
from endpoints.core.responder import Memory
from endpoints.core.write_requester import WriteRequester
from endpoints.core.write_responder import WriteResponder

FirstPsns = Callable[[int], tuple[int, int]]
"""peer -> the PSNs that this rank's and the peer's direction start at."""


@dataclass(frozen=True, slots=True)
class WriteArrived:
    """A WRITE of ``size`` bytes by ``peer`` for operation ``rkey`` is in place; ``imm`` is its immediate."""

    peer: int
    rkey: int
    imm: int
    size: int


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """``peer`` does not expose its buffer of operation ``rkey`` any more."""

    peer: int
    rkey: int


@dataclass(frozen=True, slots=True)
class WriterLost:
    """``peer`` does not acknowledge what it is sent."""

    peer: int


BulkEvent = WriteArrived | WriteRefused | WriterLost


class BulkConnections:
    """Connections come to be when they are needed first; ``counters`` are the endpoint's."""

    def __init__(
        self,
        mtu: int,
        first_psns: FirstPsns,
        timing: Timing,
        memory: Memory,
        counters: Counter[str],
    ) -> None:
        self._mtu = mtu
        self._first_psns = first_psns
        self._timing = timing
        self._memory = memory
        self._counters = counters
        self._requesters: dict[int, WriteRequester] = {}
        self._responders: dict[int, WriteResponder] = {}
        self._events: deque[BulkEvent] = deque()

    def _requester(self, peer: int) -> WriteRequester:
        if peer not in self._requesters:
            first, _ = self._first_psns(peer)
            self._requesters[peer] = WriteRequester(peer, self._mtu, first, self._timing)
        return self._requesters[peer]

    def _responder(self, peer: int) -> WriteResponder:
        if peer not in self._responders:
            _, first = self._first_psns(peer)
            done = partial(self._arrived, peer)
            self._responders[peer] = WriteResponder(peer, first, self._timing, self._memory, done)
        return self._responders[peer]

    def _arrived(self, peer: int, rkey: int, imm: int, size: int) -> None:
        self._events.append(WriteArrived(peer, rkey, imm, size))

    # -- the user's side ----------------------------------------------------------------------------------------

    def room(self, length: int) -> bool:
        """Whether a WRITE of so many bytes may be sent now; if nothing is under way, always.

        The window is one for all connections, since they share one link: what is under way to all peers together is
        what that link carries in the time of an answer.
        """
        under_way = sum(requester.under_way for requester in self._requesters.values())
        return under_way == 0 or under_way + packets_of(length, self._mtu) <= self._timing.write_window

    def write(self, peer: int, reth: Reth, imm: int, payload: U8, now: int, *, ask: bool) -> WriteBurst:
        """A WRITE for which there is room; ``ask`` for its acknowledgement at once."""
        requester = self._requester(peer)
        if requester.failed:
            self._events.append(WriterLost(peer))
        return requester.write(reth, imm, payload, now, ask=ask)

    def next_event(self) -> BulkEvent | None:
        """The next thing that happened."""
        return self._events.popleft() if self._events else None

    @property
    def idle(self) -> bool:
        """Whether every WRITE is acknowledged."""
        return all(requester.idle or requester.failed for requester in self._requesters.values())

    def acknowledged(self, rkey: int) -> bool:
        """Whether every WRITE of operation ``rkey`` is."""
        return all(requester.acknowledged(rkey) for requester in self._requesters.values())

    @property
    def repeated(self) -> int:
        """Packets that were sent again."""
        return sum(requester.repeated for requester in self._requesters.values())

    # -- arrivals -----------------------------------------------------------------------------------------------

    def receive(self, writes: Writes, now: int) -> None:
        """Packets of WRITEs, whoever sent them."""
        peers = dict.fromkeys(writes.src.tolist())
        for peer in peers:
            responder = self._responder(peer)
            before = responder.duplicates, responder.out_of_sequence, responder.protocol_errors
            responder.receive(writes if len(peers) == 1 else writes.pick(writes.src == peer), now)
            after = responder.duplicates, responder.out_of_sequence, responder.protocol_errors
            for name, old, new in zip(("duplicates", "rc_out_of_sequence", "bad_write"), before, after, strict=True):
                if new > old:
                    self._counters[name] += new - old
            self.heard(peer, now)

    def heard(self, peer: int, now: int) -> None:
        """The peer has sent something, by whatever way: it lives."""
        if peer in self._requesters:
            self._requesters[peer].heard(now)

    def on_ack(self, packet: RcPacket, now: int) -> str | None:
        """An ACK or NAK; the reason if it was of no use."""
        requester = self._requester(packet.peer)
        requester.heard(now)
        reason = requester.receive(packet, now)
        while requester.refused:
            self._events.append(WriteRefused(packet.peer, requester.refused.pop()))
        return reason

    # -- time and departures ------------------------------------------------------------------------------------

    def handle_timer(self, now: int) -> None:
        """Whatever is due."""
        for requester in self._requesters.values():
            if requester.handle_timer(now):
                self._events.append(WriterLost(requester.peer))

    def next_timeout(self) -> int | None:
        """The earliest acknowledgement or repeat that becomes due."""
        repeats = [requester.next_timeout() for requester in self._requesters.values()]
        answers = [responder.next_timeout() for responder in self._responders.values()]
        return min((at for at in (*repeats, *answers) if at is not None), default=None)

    def next_answer(self, now: int) -> RcPacket | None:
        """The next acknowledgement that is due."""
        answers = (responder.next_answer(now) for responder in self._responders.values())
        return next((answer for answer in answers if answer is not None), None)

    def next_repeat(self) -> WriteBurst | None:
        """The next packet to send again."""
        repeats = (requester.next_repeat() for requester in self._requesters.values())
        return next((repeat for repeat in repeats if repeat is not None), None)
