"""A host's process: forked from a warm parent, enters its host's network namespace, runs operations on command.

The parent imports everything once and forks (importing Scapy and numpy in 128 processes would take a minute of CPU).
Parent and child talk over a pipe: commands in, one answer each. Buffers are files that both map, so that whoever asked
for an operation judges its result and not the endpoint that made it.
"""

from __future__ import annotations

import gc
import multiprocessing
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path

import numpy as np

from endpoints.collectives.registry import collective
from endpoints.core.packets import U8
from endpoints.io.clock import now_ns
from endpoints.io.commands import Abort, Command, Crashed, Go, HostSetup, Ready, Regroup, RunOperation, Settle, Stop
from endpoints.io.host import Host, open_network

UNWRITTEN = 0xA5
"""What a receive buffer holds before an operation, so that a byte that nobody wrote is not mistaken for a zero."""

LINGER_NS = 30_000_000
"""After the end of an operation a host says nothing for so long, unless it is asked. To make up a result and to hear it
takes processor time, of which hosts that have not finished would be deprived. Most finish within this time."""


@dataclass(slots=True)
class HostProcess:
    """The parent's handle of one endpoint process."""

    rank: int
    process: ForkProcess
    pipe: Connection
    controls: tuple[Connection, ...]
    """For ``io.live_faults``, one for each of ``engines``."""

    @property
    def offloaded(self) -> bool:
        """Whether the protocol runs elsewhere than in ``process``."""
        return self.process not in self.engines

    @property
    def engines(self) -> tuple[ForkProcess, ...]:
        """On which the protocol runs."""
        return (self.process,)

    @property
    def processes(self) -> tuple[ForkProcess, ...]:
        """All of this host's."""
        return (self.process,)

    def send(self, command: Command) -> None:
        """Give a command."""
        self.pipe.send(command)


def fork_hosts(count: int) -> list[HostProcess]:
    """Fork ``count`` endpoint processes, which wait for their :class:`HostSetup`. Call it before any thread starts."""
    context = multiprocessing.get_context("fork")
    gc.collect()
    gc.freeze()
    hosts = []
    for rank in range(count):
        (ours, theirs), (our_control, their_control) = context.Pipe(), context.Pipe()
        process = context.Process(
            target=_main, args=(rank, theirs, their_control), name=f"endpoint-{rank}", daemon=True
        )
        process.start()
        theirs.close()
        their_control.close()
        hosts.append(HostProcess(rank, process, ours, (our_control,)))
    gc.unfreeze()
    return hosts


def _main(rank: int, pipe: Connection, control: Connection) -> None:
    try:
        setup = pipe.recv()
        if isinstance(setup, Stop):
            return
        _serve(setup, pipe, control)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        pass
    except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
        pipe.send(Crashed(rank, traceback.format_exc()))


def _serve(setup: HostSetup, pipe: Connection, control: Connection) -> None:
    with open_network(setup) as ring:
        host = Host(setup, ring, pipe.fileno(), control)
        op = setup.first_op - 1
        pipe.send(Ready())
        while True:
            host.run_until(pipe.poll)
            match pipe.recv():
                case RunOperation() as command:
                    op += 1
                    buffer = map_file(command.buffer, "r+")
                    buffer[:] = UNWRITTEN  # which also has it in memory: a page fault costs more than a packet
                    host.prepare(op, collective(command.algorithm), np.array(map_file(command.data, "r")), buffer)
                    pipe.send(Ready())
                case Go() as command:
                    host.run_until(lambda: False, at_most=command.start_at)
                    host.begin(op)
                    host.run_until(lambda: bool(host.ended))
                    host.run_until(lambda: False, at_most=now_ns() + LINGER_NS)
                case Abort() as command:
                    host.give_up(op, command.reason, command.suspect)
                case Settle():
                    pipe.send(host.result(op))
                case Regroup() as command:
                    op = command.first_op - 1
                    host.regroup(command)
                    pipe.send(Ready())
                case Stop():
                    return
            if host.ended:
                pipe.send(host.result(host.ended.popleft()))


def map_file(path: Path, mode: str) -> U8:
    """A file's bytes; an array of its own where there are none."""
    if path.stat().st_size == 0:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, mode)  # type: ignore[call-overload]
