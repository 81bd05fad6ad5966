"""UDP port 4791 held and silenced: what a RoCE adapter does to the kernel above it.

Without a socket there, the kernel would answer every unicast RoCE frame with ICMP port unreachable, since it sees them
as well. The socket is there and its filter refuses all. The same socket joins the multicast groups, so that the kernel
tells the fabric by IGMP.

Workers of one NIC hold the port together, each with a socket of its own; whoever else wants it is refused, and they
are if another has it.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from endpoints.core.layout import ROCE_PORT
from endpoints.io import bpf

_IP_MULTICAST_ALL: Final = 49
_ANY: Final = "0.0.0.0"  # noqa: S104 - nothing is ever received on it


class RocePort:
    """Holds the port in this network namespace; groups are joined on interface ``ifname``.

    ``shared``: with others that share it, too. OSError if the port is taken or the interface unknown.
    """

    def __init__(self, ifname: str, *, shared: bool = False) -> None:
        self._ifindex = socket.if_nametoindex(ifname)
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            bpf.attach(self._sock, bpf.REJECT_ALL)
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
            # Else the kernel would copy each multicast datagram for all who hold the port, only for them to refuse it.
            self._sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, False)
            self._sock.bind((_ANY, ROCE_PORT))
        except OSError as problem:
            self._sock.close()
            raise OSError(problem.errno, f"UDP port {ROCE_PORT} of RoCE on {ifname}: {problem.strerror}") from None

    def join(self, groups: Iterable[int]) -> None:
        """Join IPv4 multicast groups, given as integers. OSError, naming the group, if one cannot be joined."""
        for group in groups:
            self._change(socket.IP_ADD_MEMBERSHIP, group)

    def leave(self, groups: Iterable[int]) -> None:
        """Leave groups that were joined. OSError, naming the group, for one that was not."""
        for group in groups:
            self._change(socket.IP_DROP_MEMBERSHIP, group)

    def close(self) -> None:
        """Free the port and leave all groups."""
        self._sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _change(self, option: int, group: int) -> None:
        address = struct.pack("!I", group)
        # A struct ip_mreqn: the interface by index, since it may have no address yet.
        request = struct.pack("4s4si", address, b"", self._ifindex)
        try:
            self._sock.setsockopt(socket.IPPROTO_IP, option, request)
        except OSError as problem:
            full = problem.errno == errno.ENOBUFS
            reason = "too many for one socket; raise net.ipv4.igmp_max_memberships" if full else problem.strerror
            raise OSError(problem.errno, f"multicast group {socket.inet_ntoa(address)}: {reason}") from None
