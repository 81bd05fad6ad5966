"""The operations of an endpoint, several at a time: which a number means, what became of each, who sends how fast.

An operation is known by its number alone: in the immediates of chunks and messages, and as the key of its memory. It
follows from the order in which collectives are asked for, the same on all ranks; each begins and ends with them at
times of its own.

Operations under way share the link that all of them come in by, each rank on its own account: the one that brings least
has ``FIRST_SHARE`` of it, the next one as much of what is left, and so on. So a short one is not held up by a long one,
which goes on all the same (shortest first, but for starvation). It alone sends ahead of its rate, too, from its barrier
on: each of its messages would have to wait behind what a long one has sent ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from endpoints.core.errors import ProtocolError
from endpoints.core.events import Completed, Event, Failed, PhaseEntered
from endpoints.core.messages import OP_BITS, Message
from endpoints.core.operation import Operation
from endpoints.core.packets import Chunks
from endpoints.core.serial import unwrap
from endpoints.core.states import FINAL, Phase

FIRST_SHARE = Fraction(3, 4)

REMEMBERED = 128
"""Numbers so far behind the newest are of the past, whatever they were."""


class Operations:
    """``first`` is the number of the first; chunks carry the number above ``chunk_bits`` bits of their immediate."""

    def __init__(self, first: int, chunk_bits: int) -> None:
        self._next = first
        self._chunk_bits = chunk_bits
        self._prepared: dict[int, Operation] = {}
        self._known: set[int] = set()
        self._waiting: list[int] = []
        """Those that are to begin once no alias of theirs is in the way, in the order of being asked to."""
        self._early: list[tuple[int, Message]] = []
        self._reported: dict[int, int] = {}
        self._paced: tuple[int, ...] = ()

    # -- numbers ------------------------------------------------------------------------------------------------

    def number(self, wanted: int | None) -> int:
        """The number of the operation that is prepared now; ProtocolError for one that there was."""
        op = self._next if wanted is None else wanted
        if op in self._known or op <= self._next - REMEMBERED:
            raise ProtocolError(f"operation {op} has been prepared before")
        self._next = max(self._next, op + 1)
        self._known = {known for known in self._known if known > self._next - REMEMBERED} | {op}
        return op

    def unwrapped(self, op: int) -> int:
        """The number of which a message has the lower bits."""
        return unwrap(op, self._next, OP_BITS)

    def add(self, operation: Operation) -> None:
        """One that is prepared."""
        self._prepared[operation.op] = operation
        self._reported[operation.op] = 0

    def begun(self, op: int, now: int) -> list[tuple[int, Message]]:
        """Start one that is prepared; the messages (sender, message) that were there before it."""
        self._waiting = [waiting for waiting in self._waiting if waiting != op]
        self._prepared[op].start(now)
        early = [(peer, message) for peer, message in self._early if message.op == op]
        self._early = [(peer, message) for peer, message in self._early if message.op != op]
        return early

    def wait(self, op: int) -> bool:
        """Whether operation ``op`` cannot begin yet, since an alias is in the way: if so, it is noted to begin later.

        Aliases are operations whose numbers are equal in the bits that a chunk carries, so that each would take the
        other's chunks. They go one after the other, the lower number first. No rank arrives at the barrier of the later
        one before it has ended the earlier one, so nobody multicasts for the later one before all have. Numbers have
        the same order on all ranks, so that ranks never wait for each other in a circle.
        """
        if op in self._waiting or not self._obstructed(op):
            return False
        self._waiting.append(op)
        return True

    def _obstructed(self, op: int) -> bool:
        bits = (1 << 32 - self._chunk_bits) - 1
        return any(
            (other.op ^ op) & bits == 0 and (other.op < op or other.phase is not Phase.IDLE)
            for other in self._prepared.values()
            if other.op != op and other.phase not in FINAL
        )

    def next_unobstructed(self) -> int | None:
        """The next of those that waited and can begin now; it waits until :meth:`begun`."""
        return next((op for op in self._waiting if not self._obstructed(op)), None)

    def drop(self, op: int) -> None:
        """Forget one, whatever state it is in; from now on it is of the past."""
        self._waiting = [waiting for waiting in self._waiting if waiting != op]
        self._prepared.pop(op, None)
        self._reported.pop(op, None)

    @property
    def last_prepared(self) -> int:
        """The newest of those that are there; ProtocolError if there is none."""
        if not self._prepared:
            raise ProtocolError("no operation is prepared")
        return next(reversed(self._prepared))

    # -- who is meant -------------------------------------------------------------------------------------------

    def under_way(self) -> list[Operation]:
        """Those that have begun and not ended, what brings least first."""
        found = [it for it in self._prepared.values() if it.phase not in FINAL and it.phase is not Phase.IDLE]
        return found if len(found) < 2 else sorted(found, key=lambda it: (it.chunks, it.op))

    def started(self) -> list[Operation]:
        """Those that have begun, with those that have just ended."""
        return [it for it in self._prepared.values() if it.phase is not Phase.IDLE]

    def of(self, op: int) -> Operation | None:
        """The operation of this number, if it is under way."""
        operation = self._prepared.get(op)
        if operation is None or operation.phase in FINAL or operation.phase is Phase.IDLE:
            return None
        return operation

    def is_past(self, op: int) -> bool:
        """Whether the operation of this number has ended."""
        if op in self._prepared:
            return self._prepared[op].phase in FINAL
        return op in self._known or op <= self._next - REMEMBERED

    def keep(self, peer: int, message: Message) -> None:
        """A message for one that has not begun."""
        self._early.append((peer, message))

    def split(self, chunks: Chunks) -> Iterator[tuple[Operation, Chunks]]:
        """Whose chunks these are. Where one operation is under way it is handed all, and finds out itself."""
        open_now = self.under_way()
        if len(open_now) == 1:
            yield open_now[0], chunks
            return
        numbers = chunks.imm >> self._chunk_bits
        for operation in open_now:
            its = numbers == operation.op % (1 << 32 - self._chunk_bits)
            if its.all():
                yield operation, chunks
            elif its.any():
                yield operation, chunks.pick(its)

    # -- what became of them ------------------------------------------------------------------------------------

    def news(self) -> Iterator[Event]:
        """What they have become since this was asked last; those that have ended are forgotten then."""
        for op, operation in list(self._prepared.items()):
            for phase, at in operation.phases[self._reported[op] :]:
                yield PhaseEntered(op, phase, at)
                if phase is Phase.DONE:
                    yield Completed(op, at)
                elif phase is Phase.FAILED and operation.failure is not None:
                    yield Failed(op, at, *operation.failure)
            self._reported[op] = len(operation.phases)
            if operation.phase in FINAL:
                del self._prepared[op], self._reported[op]

    # -- the link that they share -------------------------------------------------------------------------------

    def share_link(self, now: int) -> None:
        """Have each that moves bytes send at its share, if these are others than the last time."""
        open_now = self.under_way()
        moving = [it for it in open_now if it.moving]
        numbers = *(it.op for it in open_now[:1]), *(it.op for it in moving)
        if numbers == self._paced:
            return
        self._paced = numbers
        left = Fraction(1)
        for operation in moving:
            share = left if operation is moving[-1] else left * FIRST_SHARE
            operation.pace(share, now, ahead=operation is open_now[0])
            left -= share
