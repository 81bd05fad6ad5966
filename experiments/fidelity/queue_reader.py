"""Asks the kernel what waits in the queues of shaped links, by one socket for each network namespace."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

from experiments.fidelity.queues import REQUEST, Queue, parse_queues
from topo.namespaces import network_of

TIMEOUT_S = 10.0
ANSWER_BYTES = 1 << 16


class QueueReader:
    """The queues of the interfaces that are there now, in the namespace of process ``pid`` (None: this one).

    A look takes some 20 us, and a millisecond where a hundred links have their ends. OSError if the namespace is gone.
    """

    def __init__(self, pid: int | None = None) -> None:
        with network_of(pid):  # the socket stays there
            self.names = dict(socket.if_nameindex())
            self._kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._kernel.settimeout(TIMEOUT_S)

    @property
    def send_buffer(self) -> int:
        """Memory that a socket may have in queues, by default: that of vswitchd's, too."""
        return self._kernel.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    def read(self) -> Iterator[tuple[str, Queue]]:
        """By sending interface, as far as the kernel answers: no run ends because it is watched."""
        with suppress(OSError):
            over = False
            self._kernel.send(REQUEST)
            while not over:
                queues, over = parse_queues(self._kernel.recv(ANSWER_BYTES))
                for queue in queues:
                    if queue.index in self.names:
                        yield self.names[queue.index], queue
