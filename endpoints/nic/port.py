"""A worker of a NIC as its application reaches it: one channel's queues and connection, and the worker's end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import reduction

from endpoints.io.commands import Crashed
from endpoints.nic.channel import Channel, ring, silence
from endpoints.nic.entries import Completion, Work
from endpoints.nic.queue import QueueBroken
from endpoints.nic.requests import Refused

ANSWER_S = 60.0
"""For an answer, which takes a worker that goes on milliseconds, and seconds to open its network on a busy machine."""

GONE = "its NIC has ended"


class NicGone(Exception):
    """The NIC's process has ended, or does not answer any more."""


class _End:
    """In place of a message: there is none any more."""


class Port:
    """``gone`` says that and how the worker has ended; None while it is there."""

    def __init__(self, channel: Channel) -> None:
        self._work, self._completions = channel.for_application()
        self._channel = channel
        self._connection = channel.application
        self.gone: str | None = None
        self.trace: str | None = None
        """Of a worker that has crashed."""

    @property
    def events(self) -> tuple[object, ...]:
        """What becomes readable when there is something to learn from :meth:`completions`."""
        return (self._connection, self._channel.completed) if self.gone is None else (self._channel.completed,)

    # -- the queues -------------------------------------------------------------------------------------------------

    def post(self, work: Work) -> None:
        """Hand it over; nothing where the worker is gone, who then completes nothing any more."""
        try:
            self._work.put(work.pack())
        except QueueBroken as problem:
            self.lose(f"its NIC's queue is broken: {problem}")
        else:
            ring(self._channel.doorbell)

    def completions(self) -> Iterator[Completion]:
        """What has come. If the worker has ended, ``gone`` is set before the first, and these are the last."""
        silence(self._channel.completed)
        if self.gone is None and self._connection.poll():
            self._hear_its_end()
        while (packed := self._completions.take()) is not None:
            yield Completion.unpack(packed)

    # -- the connection ---------------------------------------------------------------------------------------------

    def tell(self, message: object, descriptor: int | None = None) -> None:
        """Send a message, and a file descriptor after it if one is given; :class:`NicGone` where nobody is there."""
        try:
            self._connection.send(message)
            if descriptor is not None:
                reduction.send_handle(self._connection, descriptor, None)
        except OSError:
            self._hear_its_end()
            raise NicGone(self.gone) from None

    def answer(self, *kinds: type) -> object:
        """What it answers; :class:`NicGone` if it does not, OSError if it refuses."""
        if not self._connection.poll(ANSWER_S):
            self.lose(f"its NIC has not answered in {ANSWER_S:g} s")
            raise NicGone(self.gone)
        answer = self._receive()
        if isinstance(answer, Refused):
            raise OSError(answer.reason)
        if not isinstance(answer, kinds):
            self._end(answer)
            raise NicGone(self.gone)
        return answer

    def leave(self, why: str, last_words: object) -> None:
        """Tell it something, and then have nothing to do with it any more; nothing if that is so already."""
        if self.gone is None:
            with suppress(NicGone):
                self.tell(last_words)
            self.lose(why)

    def lose(self, how: str) -> None:
        """Have nothing to do with it any more, which ends it, too."""
        self.gone = self.gone or how
        self._connection.close()

    def _hear_its_end(self) -> None:
        """It sends nothing unasked but its last words."""
        self._end(self._receive())

    def _end(self, last_words: object) -> None:
        match last_words:
            case _End():
                self.lose(GONE)
            case Crashed(trace=trace):
                self.trace = trace
                self.lose(f"its NIC has crashed: {trace.strip().splitlines()[-1]}")
            case _:
                self.lose(f"its NIC said {last_words!r} unasked")

    def _receive(self) -> object:
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            return _End()
