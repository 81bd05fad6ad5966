"""What joins an application and a worker of its NIC: two queues in shared memory, two doorbells, and a connection.

Work goes in and completions come out through the queues; an eventfd beside each wakes whoever sleeps. Everything else,
registering memory above all, goes over the connection, as over a NIC's driver: it is slow and rare. Its end is also the
end of whoever held the other side. The memory has no name, so it is gone when both sides are.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Self

import numpy as np

from endpoints.core.packets import U8
from endpoints.nic.entries import DEPTH, Completion, Work
from endpoints.nic.queue import Reader, Writer, queue_bytes

SEND_TIMEOUT_S = 5
"""For room in the connection: whoever does not read it for so long, though asked nothing else, is as good as gone."""

_WORK_BYTES = queue_bytes(Work.ENTRY, DEPTH)
MEMORY_BYTES = _WORK_BYTES + queue_bytes(Completion.ENTRY, DEPTH)
"""Of both queues."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Both ends, to be made before the processes fork; each then takes its own."""

    memory: mmap.mmap
    doorbell: int
    """Rung when there is work."""
    completed: int
    """Rung when there is a completion."""
    application: Connection
    nic: Connection

    @classmethod
    def make(cls) -> Self:
        """A new one."""
        application, nic = multiprocessing.Pipe()
        flags = os.EFD_NONBLOCK | os.EFD_CLOEXEC
        return cls(mmap.mmap(-1, MEMORY_BYTES), os.eventfd(0, flags), os.eventfd(0, flags), application, nic)

    def for_application(self) -> tuple[Writer, Reader]:
        """Its ends of the work queue and the completion queue; the NIC's end of the connection is closed here."""
        self.nic.close()
        work, completions = self._queues()
        return Writer(work, Work.ENTRY, DEPTH), Reader(completions, Completion.ENTRY, DEPTH)

    def for_nic(self) -> tuple[Reader, Writer]:
        """The NIC's ends; the application's end of the connection is closed here."""
        self.application.close()
        _bound_sending(self.nic)
        work, completions = self._queues()
        return Reader(work, Work.ENTRY, DEPTH), Writer(completions, Completion.ENTRY, DEPTH)

    def close(self) -> None:
        """Let go of everything, in a process that is neither side."""
        self.application.close()
        self.nic.close()
        os.close(self.doorbell)
        os.close(self.completed)
        self.memory.close()

    def _queues(self) -> tuple[U8, U8]:
        memory = np.frombuffer(self.memory, np.uint8)
        return memory[:_WORK_BYTES], memory[_WORK_BYTES:]


def _bound_sending(connection: Connection) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))


def ring(doorbell: int) -> None:
    """Wake whoever waits for it."""
    os.eventfd_write(doorbell, 1)


def silence(doorbell: int) -> None:
    """Have it be silent until it rings again."""
    with suppress(BlockingIOError):
        os.eventfd_read(doorbell)
