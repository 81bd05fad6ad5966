"""The receiving side of a bulk connection: places RDMA WRITEs by whole runs of packets, ACKs, and NAKs what is missing.

A message's first packet says where it goes and its last one, with the immediate, that it is in place (IBTA vol. 1,
9.7.5.1 and 9.7.1); packets between carry nothing but their PSN, so that those which come early wait for their turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from endpoints.core.config import Timing
from endpoints.core.packets import ACK, NAK_REMOTE_ACCESS, NAK_SEQUENCE, Aeth, Opcode, RcPacket, Writes
from endpoints.core.responder import Memory
from endpoints.core.serial import PSN_BITS, PSN_MASK, unwrap
from endpoints.core.write_requester import OVERTAKEN

_FIRST = frozenset({Opcode.RC_WRITE_FIRST, Opcode.RC_WRITE_ONLY, Opcode.RC_WRITE_ONLY_IMM})
_WITH_IMM = frozenset({Opcode.RC_WRITE_LAST_IMM, Opcode.RC_WRITE_ONLY_IMM})
_LAST = frozenset({Opcode.RC_WRITE_LAST, Opcode.RC_WRITE_ONLY, *_WITH_IMM})


@dataclass(slots=True)
class _Open:
    """The message that is being received: where it goes, whether that is exposed, how many of its bytes are here."""

    rkey: int
    va: int
    exposed: bool
    size: int
    got: int = 0


Done = Callable[[int, int, int], None]
"""(rkey, immediate, bytes) of a message that is in place."""


class WriteResponder:
    """WRITEs of ``peer`` into what ``memory`` exposes; ``done`` is called for each message with an immediate."""

    def __init__(self, peer: int, first_psn: int, timing: Timing, memory: Memory, done: Done) -> None:
        self.received = 0
        self.duplicates = 0
        self.out_of_sequence = 0
        self.protocol_errors = 0
        self._peer = peer
        self._timing = timing
        self._memory = memory
        self._done = done
        self._expected = first_psn
        self._highest = first_psn - 1
        self._asked = first_psn
        """PSNs below it that are missing have been asked for."""
        self._early: dict[int, Writes] = {}
        """Runs of packets that came before their turn, by their first PSN; ``_kept`` has all their PSNs."""
        self._kept: set[int] = set()
        self._open: _Open | None = None
        self._ack_at: int | None = None
        self._out: deque[RcPacket] = deque()

    # -- arrivals -----------------------------------------------------------------------------------------------

    def receive(self, writes: Writes, now: int) -> None:
        """Take packets in order of arrival, all from the peer."""
        self.received += len(writes)
        base, duplicates = self._expected, self.duplicates
        first = unwrap(int(writes.psn[0]), base, PSN_BITS)
        # Distances within a batch are far below half the number space: they need no more than 24-bit arithmetic.
        psns = (first + _signed(writes.psn - writes.psn[0])).tolist()
        if not self._early and psns == list(range(base, base + len(psns))):
            self._take(writes, 0, len(psns))
            self._highest = max(self._highest, psns[-1])
        else:
            self._sort_in(writes, psns)
        repeated = self.duplicates > duplicates
        asked = bool(writes.ack_request.any())
        self._ask_for_missing(again=repeated and asked)
        if repeated:  # acknowledgements are lost: one alone may be again
            self._out.append(self._answer(self._expected - 1, ACK))
        at = now if asked or repeated else now + self._timing.ack_delay_ns
        self._ack_at = at if self._ack_at is None else min(self._ack_at, at)

    def _sort_in(self, writes: Writes, psns: list[int]) -> None:
        """What is in sequence is placed, what is early kept, by runs of consecutive PSNs that are new."""
        start = 0
        while start < len(psns):
            stop = start + 1
            psn = psns[start]
            if psn < self._expected or psn in self._kept:
                self.duplicates += 1
            elif psn - self._expected < self._timing.write_window:  # what a peer may have under way
                while stop < len(psns) and psns[stop] == psns[stop - 1] + 1 and psns[stop] not in self._kept:
                    stop += 1
                self._take_run(writes, start, stop, psn)
            start = stop

    def _take_run(self, writes: Writes, start: int, stop: int, psn: int) -> None:
        """Packets ``start .. stop - 1`` are new, and have PSNs from ``psn`` on."""
        count = stop - start
        self._highest = max(self._highest, psn + count - 1)
        if psn > self._expected:
            self.out_of_sequence += count
            self._early[psn] = writes.copy(start, stop)
            self._kept.update(range(psn, psn + count))
            return
        self._take(writes, start, stop)
        while (early := self._early.pop(self._expected, None)) is not None:
            self._kept.difference_update(range(self._expected, self._expected + len(early)))
            self._take(early, 0, len(early))

    def _ask_for_missing(self, *, again: bool) -> None:
        """NAK each packet that newer ones have overtaken, once, and all of them when the peer repeats itself."""
        if self._highest < self._expected:
            self._asked = self._expected
            return
        start = self._expected if again else max(self._asked, self._expected)
        stop = self._highest + 1 - (0 if again else OVERTAKEN)
        for psn in range(start, stop):
            if psn not in self._kept:
                self._out.append(self._answer(psn, NAK_SEQUENCE))
        self._asked = max(start, stop)

    # -- placement ----------------------------------------------------------------------------------------------

    def _take(self, writes: Writes, start: int, stop: int) -> None:
        """Packets ``start .. stop - 1`` are next in sequence."""
        at = start
        for opcode, group in groupby(writes.opcode[start:stop].tolist()):
            count = sum(1 for _ in group)
            if opcode == Opcode.RC_WRITE_MIDDLE:
                self._place(writes, at, at + count)
                self._expected += count
            else:
                for index in range(at, at + count):
                    self._take_end(writes, index, opcode)
                    self._expected += 1
            at += count

    def _take_end(self, writes: Writes, index: int, opcode: int) -> None:
        """A packet that begins or ends a message, or both."""
        if opcode in _FIRST:
            rkey, va, size = int(writes.rkey[index]), int(writes.va[index]), int(writes.size[index])
            exposed = self._memory(rkey, va, size) is not None
            self._open = _Open(rkey, va, exposed, size)
            if not exposed:
                self._out.append(self._answer(self._expected, NAK_REMOTE_ACCESS))
        self._place(writes, index, index + 1)
        message = self._open
        if message is not None and opcode in _LAST:
            self._open = None
            if message.got != message.size:
                self.protocol_errors += 1
            elif message.exposed and opcode in _WITH_IMM:
                self._done(message.rkey, int(writes.imm[index]), message.size)

    def _place(self, writes: Writes, first: int, stop: int) -> None:
        """Payloads of packets of one opcode, and of one message unless it is but one packet, to their place."""
        message = self._open
        length = int(writes.length[first])
        count = stop - first
        if message is None or message.got + count * length > message.size:
            self.protocol_errors += count
            self._open = None  # a message that is longer than it says is never in place
            return
        if message.exposed and length:
            # Asked anew for each run: an operation that has ended or failed meanwhile has its memory back.
            place = self._memory(message.rkey, message.va + message.got, count * length)
            if place is None:
                message.exposed = False
                self._out.append(self._answer(self._expected, NAK_REMOTE_ACCESS))
            else:
                place.reshape(count, length)[:] = writes.payloads(first, stop)
        message.got += count * length

    # -- departures ---------------------------------------------------------------------------------------------

    def _answer(self, psn: int, syndrome: int) -> RcPacket:
        aeth = Aeth(syndrome, self._highest & PSN_MASK)
        return RcPacket(Opcode.RC_ACKNOWLEDGE, self._peer, psn & PSN_MASK, aeth=aeth, bulk=True)

    def next_answer(self, now: int) -> RcPacket | None:
        """The next NAK, or the acknowledgement that is due."""
        if self._out:
            return self._out.popleft()
        if self._ack_at is None or self._ack_at > now:
            return None
        self._ack_at = None
        return self._answer(self._expected - 1, ACK)

    def next_timeout(self) -> int | None:
        """When an acknowledgement is due."""
        return self._ack_at


def _signed(distance: np.ndarray) -> np.ndarray:
    """24-bit differences as numbers from -2^23 to 2^23 - 1."""
    half = 1 << (PSN_BITS - 1)
    return ((distance.astype(np.int64) + half) & PSN_MASK) - half
