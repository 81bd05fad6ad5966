"""What every operation goes through, whatever moves its bytes: phases, a barrier first, a bound in time, giving up.

An algorithm's operation (``core.operation.Operation``) derives from :class:`Lifecycle`, has what is its own beside it,
and overrides the callbacks that concern it: those of the other ways to move bytes mean nothing to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from fractions import Fraction

from endpoints.core.barrier import Barrier, Step
from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.errors import ProtocolError
from endpoints.core.messages import NOBODY, Kind, Message
from endpoints.core.operation import Services
from endpoints.core.packets import U8
from endpoints.core.receive_buffer import ReceiveBuffer
from endpoints.core.states import FINAL, MOVING, TRANSITIONS, Input, Phase
from endpoints.core.timers import Timer, TimerTable

AFTER_BARRIER_BOUNDS = 4
"""The bound on an operation after its barrier, in bounds on the barrier."""


def barrier_bound(config: ProtocolConfig, timing: Timing, expected_ns: int) -> int:
    """Nanoseconds for the barrier of an operation whose bytes take ``expected_ns`` at the link's rate.

    A rank waits for longer by ``timing.slack_ns`` for each hop to rank 0; what comes after the barrier has
    ``AFTER_BARRIER_BOUNDS`` times as many.
    """
    return max(config.op_timeout_ns + 2 * timing.peer_timeout_ns, config.op_timeout_scaling * expected_ns)


class Indifferent:
    """The callbacks of ways to move bytes that an algorithm need not use."""

    @property
    def awaited_bytes(self) -> int:
        """Nothing is handed on."""
        return 0

    def next_departure(self) -> int | None:
        """Nothing is sent by the clock."""
        return None

    def pace(self, share: Fraction, now: int, *, ahead: bool) -> None:
        """Nothing is sent by the clock."""

    def on_read_data(self, peer: int, context: int, index: int, payload: U8, now: int) -> None:
        """Nothing is ever READ."""

    def on_read_refused(self, peer: int, context: int, now: int) -> None:
        """Nothing is ever READ."""

    def after_batch(self) -> None:
        """Nothing follows from a batch as a whole."""

    def on_write(self, peer: int, imm: int, size: int, now: int) -> None:
        """Nothing is ever written."""

    def on_acknowledged(self, now: int) -> None:
        """Nothing is ever written."""

    def on_write_refused(self, peer: int, now: int) -> None:
        """Nothing is ever written."""


class Lifecycle(Indifferent, ABC):
    """Operation ``op`` of a rank; ``buffer`` is what it receives into and exposes to its peers meanwhile.

    It is the memory of a ``ReceiveBuffer``.
    """

    def __init__(self, services: Services, op: int, buffer: U8) -> None:
        self.op = op
        self.phase = Phase.IDLE
        self.phases: list[tuple[Phase, int]] = []
        self.failure: tuple[str, int | None] | None = None
        self._s = services
        self._buffer = ReceiveBuffer(buffer)
        self._barrier = Barrier(services.rank, services.comm.size, self._tell_barrier)
        self._timers = TimerTable()
        self._heard_anything = services.comm.size == 1

    # -- for the algorithm to say -------------------------------------------------------------------------------

    @abstractmethod
    def _expected(self) -> int:
        """Nanoseconds that the bytes take at the link's rate."""

    @abstractmethod
    def _after_barrier(self, now: int) -> None:
        """The barrier may have been passed, which is asked of it: go on from there."""

    @abstractmethod
    def _on_timer(self, timer: Timer, now: int) -> None:
        """A timer is due, after the barrier; with ``DEADLINE``, something has been heard of somebody."""

    @abstractmethod
    def _may_wait(self) -> Collection[int]:
        """The ranks to tell of a failure, besides those in the barrier."""

    # -- phases -------------------------------------------------------------------------------------------------

    @property
    def moving(self) -> bool:
        """Whether bytes are on their way."""
        return self.phase in MOVING

    def _enter(self, step: Input, now: int) -> None:
        table = TRANSITIONS[self.phase]
        if step not in table:
            raise ProtocolError(f"operation {self.op}: {step.value} in phase {self.phase.value}")
        self.phase = table[step]
        self.phases.append((self.phase, now))

    def start(self, now: int) -> None:
        """Arrive at the barrier."""
        self._enter(Input.START, now)
        # Whoever waits for those below gives up first, and tells those who wait for it, so that all name the same rank.
        self._timers.set(Timer.DEADLINE, now + self._bound() + self._barrier.depth * self._s.timing.slack_ns)
        self._be_patient(now)
        self._barrier.start()
        self._after_barrier(now)

    def _bound(self) -> int:
        return barrier_bound(self._s.config, self._s.timing, self._expected())

    def _leave_barrier(self, step: Input, now: int) -> bool:
        """Whether the barrier has just been passed, and ``step`` been taken."""
        if self.phase is not Phase.BARRIER or not self._barrier.passed:
            return False
        self._enter(step, now)
        self._timers.stop(Timer.PATIENCE)
        # Whoever dies or goes deaf from here on is noticed by its peers; what takes long is recovery from heavy loss.
        self._timers.set(Timer.DEADLINE, now + AFTER_BARRIER_BOUNDS * self._bound())
        return True

    def _fail(self, reason: str, suspect: int | None, now: int) -> None:
        """Give up, and tell those who may wait for this rank."""
        if self.phase in FINAL:
            return
        waiting = set(self._may_wait()) | set(self._barrier.neighbours if self.phase is Phase.BARRIER else ())
        self._enter(Input.FAILURE, now)
        self.failure = (reason, suspect)
        self._timers.clear()
        for peer in sorted(waiting):
            self._s.send(peer, Message(Kind.ABORT, self.op, (NOBODY if suspect is None else suspect,)))

    def _fail_if_deaf(self, now: int) -> bool:
        """Whether nothing has been heard from anybody, so that nobody else is to blame."""
        if not self._heard_anything:
            self._fail("heard nothing from any rank: its own link seems to be down", self._s.rank, now)
        return not self._heard_anything

    @property
    def _left(self) -> int:
        return (self._s.rank - 1) % self._s.comm.size

    @property
    def _right(self) -> int:
        return (self._s.rank + 1) % self._s.comm.size

    @property
    def _neighbours(self) -> set[int]:
        """On the ring of ranks; nobody where there is but one rank."""
        return {self._left, self._right} - {self._s.rank}

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timeout(self) -> int | None:
        """The earliest timer."""
        return self._timers.next()

    def handle_timer(self, now: int) -> None:
        """Whatever is due."""
        for timer in self._timers.expired(now):
            if timer is Timer.DEADLINE and self._fail_if_deaf(now):
                return
            if self.phase is Phase.BARRIER:
                self._on_barrier_timer(timer, now)
            else:
                self._on_timer(timer, now)

    def _on_barrier_timer(self, timer: Timer, now: int) -> None:
        awaited = self._barrier.awaited
        if timer is Timer.DEADLINE:
            self._fail(f"time is up in barrier: nothing came from rank {awaited[0]}", awaited[0], now)
        elif timer is Timer.PATIENCE:
            self._probe(awaited, now)

    def _be_patient(self, now: int) -> None:
        self._timers.set(Timer.PATIENCE, now + self._s.timing.patience_ns)

    def _probe(self, awaited: Iterable[int], now: int) -> None:
        """Nothing has come for long: those who are awaited must show that they live, and so again after a while."""
        for peer in awaited:
            self._s.send(peer, Message(Kind.PROBE, self.op))
        self._be_patient(now)

    # -- arrivals -----------------------------------------------------------------------------------------------

    def on_message(self, peer: int, message: Message, now: int) -> None:
        """A control message of this operation: those that every operation knows."""
        self._heard_anything = True
        match message.kind:
            case Kind.BARRIER if message.body:
                self._barrier.hear(peer, message.body[0])
                self._after_barrier(now)
            case Kind.ABORT if message.body:
                suspect = None if message.body[0] == NOBODY else message.body[0]
                self._s.counters["told_to_give_up"] += 1
                self._fail(f"rank {peer} gave up", suspect, now)

    def _tell_barrier(self, peer: int, step: Step) -> None:
        self._s.send(peer, Message(Kind.BARRIER, self.op, (step,)))

    def remote_view(self, va: int, length: int) -> U8 | None:
        """The receive buffer, which peers may read and write while the operation lasts."""
        return self._buffer.view(va, length)
