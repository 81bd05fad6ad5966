"""The processes of a host with a NIC: its application, and the workers of its NIC, on which the collectives run."""

from __future__ import annotations

import gc
import multiprocessing
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess

from endpoints.io.commands import Crashed, HostSetup, Ready
from endpoints.io.host import Host, open_network
from endpoints.io.process import HostProcess
from endpoints.nic import budget
from endpoints.nic.application import serve
from endpoints.nic.channel import Channel
from endpoints.nic.device import OUTSTANDING, Device, Engine
from endpoints.nic.port import NicGone
from endpoints.nic.verbs import Nic

OpenEngine = Callable[[HostSetup, int, Connection], AbstractContextManager[Engine]]


@dataclass(slots=True)
class OffloadedHost(HostProcess):
    """The parent's handle: ``process`` is the application's, which answers."""

    workers: tuple[ForkProcess, ...]

    @property
    def engines(self) -> tuple[ForkProcess, ...]:
        """The NIC's workers."""
        return self.workers

    @property
    def processes(self) -> tuple[ForkProcess, ...]:
        """All of this host's."""
        return self.process, *self.workers


@contextmanager
def on_the_network(setup: HostSetup, interrupt: int, control: Connection) -> Iterator[Engine]:
    """The engine of a NIC's worker."""
    with open_network(setup) as ring:
        yield Host(setup, ring, interrupt, control)


def fork_offloaded(count: int, workers: int = 1, open_engine: OpenEngine = on_the_network) -> list[HostProcess]:
    """Fork ``count`` applications with a NIC each, as ``io.process.fork_hosts`` does without.

    Call it before any thread starts.
    """
    gc.collect()
    gc.freeze()
    hosts: list[HostProcess] = []
    for rank in range(count):
        hosts.append(_fork(rank, workers, open_engine, hosts))
    gc.unfreeze()
    return hosts


def _fork(rank: int, workers: int, open_engine: OpenEngine, before: Sequence[HostProcess]) -> OffloadedHost:
    """Each end of a pipe is held by one process alone, so that its end is heard: children close what is not theirs."""
    context = multiprocessing.get_context("fork")
    channels = [Channel.make() for _ in range(workers)]
    nic, controls = [], []
    inherited = [end for host in before for end in (host.pipe, *host.controls)]
    for worker, channel in enumerate(channels):
        ours, theirs = context.Pipe()
        others = [other for other in channels if other is not channel]
        nic.append(
            context.Process(
                target=_nic,
                args=(rank, channel, theirs, open_engine, others, [*inherited, ours]),
                name=f"nic-{rank}-{worker}",
                daemon=True,
            )
        )
        nic[-1].start()
        theirs.close()
        controls.append(ours)
        inherited.append(ours)
    ours, theirs = context.Pipe()
    application = context.Process(
        target=_application, args=(rank, theirs, channels, [*inherited, ours]), name=f"application-{rank}", daemon=True
    )
    application.start()
    theirs.close()
    for channel in channels:
        channel.close()
    return OffloadedHost(rank, application, ours, tuple(controls), tuple(nic))


def _nic(
    rank: int,
    channel: Channel,
    control: Connection,
    open_engine: OpenEngine,
    others: Sequence[Channel],
    inherited: Sequence[Connection],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when its application does
    for other in others:
        other.close()
    for end in (*inherited, channel.application):
        end.close()
    try:
        command = channel.nic.recv()
        if isinstance(command, HostSetup):
            setup, memory = _its_part(command)
            with select.epoll() as interrupt:
                for descriptor in (channel.doorbell, channel.nic.fileno()):
                    interrupt.register(descriptor, select.EPOLLIN)
                with open_engine(setup, interrupt.fileno(), control) as engine:
                    device = Device(channel, interrupt, engine, setup.first_op, memory)
                    channel.nic.send(Ready())
                    device.serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the application has ended
    except Exception:  # noqa: BLE001 - whatever it is, the application must hear of it
        with suppress(OSError):
            channel.nic.send(Crashed(rank, traceback.format_exc()))
        sys.exit(1)


def _its_part(setup: HostSetup) -> tuple[HostSetup, budget.Nic]:
    """Workers have equal parts of the staging, and of the memory in which the staging is."""
    nic = budget.of_worker(setup.nic_memory, setup.rq_depth, setup.comm.workers, OUTSTANDING)
    return replace(setup, rq_depth=nic.staging), nic


def _application(rank: int, pipe: Connection, channels: Sequence[Channel], inherited: Sequence[Connection]) -> None:
    for end in inherited:
        end.close()
    nic = Nic(channels)
    try:
        with nic:
            serve(nic, pipe)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        pass
    except NicGone:
        if nic.trace is not None:
            pipe.send(Crashed(rank, nic.trace))
        sys.exit(1)
    except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
        pipe.send(Crashed(rank, traceback.format_exc()))
