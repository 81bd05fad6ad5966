"""The application process of a host with a NIC, as whoever runs collectives knows it.

It does what ``io.process`` does without a NIC, and is told to in the same words; but all it does for a collective is to
post it and to sleep until it has ended. Only the NIC sends and receives.
"""

from __future__ import annotations

import time
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from endpoints.io.commands import (
    Abort,
    Call,
    Go,
    HostSetup,
    RankResult,
    Ready,
    Regroup,
    Returned,
    RunOperation,
    Settle,
    Stop,
)
from endpoints.io.host import enter_namespace
from endpoints.io.process import UNWRITTEN, map_file
from endpoints.nic.entries import Status
from endpoints.nic.port import NicGone
from endpoints.nic.verbs import Handle, Nic, Region


def serve(nic: Nic, pipe: Connection) -> None:
    """Until told to stop; :class:`NicGone` as soon as the NIC is."""
    application = _Application(nic, pipe)
    while True:
        nic.progress()
        if nic.gone is not None:
            raise NicGone(nic.gone)
        if pipe not in wait([pipe, *nic.events]):
            continue
        match pipe.recv():
            case HostSetup() as setup:
                enter_namespace(setup.namespace)
                nic.open(setup)
                pipe.send(Ready())
            case Regroup() as command:
                application.release()
                nic.regroup(command)
                pipe.send(Ready())
            case RunOperation() as command:
                application.prepare(command)
                pipe.send(Ready())
            case Go() as command:
                application.run(command)
            case Abort() as command:
                application.give_up(command)
            case Settle():
                application.settle()
            case Call() as command:
                pipe.send(Returned(command.function(nic, *command.arguments)))
            case Stop():
                return


class _Application:
    """What a host does with its NIC."""

    def __init__(self, nic: Nic, pipe: Connection) -> None:
        self._nic = nic
        self._pipe = pipe
        self._prepared: tuple[str, Region, Region] | None = None
        self._last: tuple[Handle, float] | None = None
        """The last work request, and the processor time that it took here."""

    def prepare(self, command: RunOperation) -> None:
        """Register the buffers."""
        self.release()
        buffer = map_file(command.buffer, "r+")
        buffer[:] = UNWRITTEN
        data, into = self._nic.register(map_file(command.data, "r+")), self._nic.register(buffer)
        self._prepared = command.algorithm, data, into

    def release(self) -> None:
        """Let go of the buffers of the last operation."""
        if self._prepared is not None:
            _, *regions = self._prepared
            self._prepared = None
            for region in regions:
                self._nic.deregister(region)

    def give_up(self, command: Abort) -> None:
        """The prepared operation does not begin, if there is one."""
        if self._prepared is not None:
            self.release()
            self._pipe.send(RankResult(self._nic.rank, [], (command.reason, command.suspect), {}, 0, 0.0))

    def run(self, command: Go) -> None:
        """Post the prepared operation, sleep until it has ended, and say how it did."""
        assert self._prepared is not None
        before = time.process_time()
        handle = self._nic.post(*self._prepared, start_at=command.start_at)
        while not handle.poll():
            if self._pipe in wait([self._pipe, *self._nic.events]):
                match self._pipe.recv():
                    case Abort(reason=reason, suspect=suspect):
                        self._nic.give_up(reason, suspect)
                    case Stop():
                        raise EOFError
        self._last = handle, time.process_time() - before
        result = self._result(handle)
        self.release()  # before it is said: whoever hears it may take the files away
        self._pipe.send(result)

    def settle(self) -> None:
        """Say it again."""
        assert self._last is not None
        self._pipe.send(self._result(self._last[0]))

    def _result(self, handle: Handle) -> RankResult:
        assert handle.completion is not None
        assert self._last is not None
        reason, suspect = handle.completion.reason, handle.completion.suspect
        nothing = RankResult(self._nic.rank, [], (reason, suspect), {}, 0, 0.0)
        if self._nic.gone is not None:
            return replace(nothing, failure=(reason, self._nic.rank), gone=self._nic.gone)
        if handle.completion.status in {Status.SUCCESS, Status.RETRY_EXCEEDED_ERROR}:
            return replace(self._nic.result(handle), application_cpu_seconds=self._last[1])
        return nothing
