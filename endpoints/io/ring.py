"""The packet ring: a host's RoCE frames, received into memory shared with the kernel, sent through one raw socket.

What comes in lies in the ring until it is released, so that a batch is checked and placed without a copy or a system
call. What goes out takes the interface's queueing discipline, hence the emulated link's rate (PACKET_QDISC_BYPASS is
never set).
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import socket
import struct
from types import TracebackType
from typing import Final, Self, cast

from endpoints.core.layout import max_frame_length
from endpoints.core.packets import I32, U8
from endpoints.io import bpf
from endpoints.io.slots import FRAME, Geometry, Slots

ETH_P_IP: Final = 0x0800

_SOL_PACKET: Final = 263
_PACKET_ADD_MEMBERSHIP: Final = 1
_PACKET_RX_RING: Final = 5
_PACKET_STATISTICS: Final = 6
_PACKET_VERSION: Final = 10
_PACKET_MR_ALLMULTI: Final = 2
_PACKET_MR_PROMISC: Final = 1
_TPACKET_V2: Final = 1
_SO_SNDBUFFORCE: Final = 32

SEND_BUFFER: Final = 4 << 20
"""Bytes of frames in the interface's queue before ``send`` says no: some hundreds of frames of 4 KiB, with the kernel's
bookkeeping. A queue longer than that helps nobody; the default of 208 KiB would starve a link between two wake-ups."""


class PacketRing:
    """A raw socket on interface ``ifname`` whose frames arrive in a ring. OSError if it cannot be had.

    ``protocol`` is the Ethernet type to receive (3: all, both directions), ``longest`` the longest frame that is kept
    whole, ``frames`` how many at least the ring holds.
    """

    def __init__(self, ifname: str, protocol: int, longest: int, frames: int, program: bpf.Program = ()) -> None:
        # Protocol 0 receives nothing, so that filter, ring and interface are in place before the first frame is.
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        try:
            self._sock.setblocking(False)
            self.geometry = Geometry.for_frames(longest, frames)
            self._memory = self._map()
            self._slots = Slots(self._memory, self.geometry)
            if program:
                bpf.attach(self._sock, program)
            self._join(ifname, promiscuous=not program)
            self._sock.bind((ifname, protocol))
        except BaseException:
            self._sock.close()
            raise
        self._received = 0
        self._dropped = 0
        self._checked = False

    def _map(self) -> mmap.mmap:
        g = self.geometry
        self._sock.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        request = struct.pack("IIII", g.block_size, g.blocks, g.slot_size, g.slots)
        self._sock.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        # Populated, since a page fault per page of the first round would cost more than the frames in it.
        return mmap.mmap(
            self._sock.fileno(), g.size, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ | mmap.PROT_WRITE
        )

    def _join(self, ifname: str, *, promiscuous: bool) -> None:
        """Have the interface pass on what its filter would keep back: all multicast, or all there is."""
        kind = _PACKET_MR_PROMISC if promiscuous else _PACKET_MR_ALLMULTI
        request = struct.pack("iHH8s", socket.if_nametoindex(ifname), kind, 0, b"")
        self._sock.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)

    def fileno(self) -> int:
        """For poll: POLLIN when a frame has come, POLLOUT when the send buffer has room."""
        return self._sock.fileno()

    def take(self, limit: int) -> tuple[U8, I32]:
        """Frames that have come and not been released, shape (n, stride), and their lengths, shape (n,).

        At most ``limit``; fewer at the end of a block of the ring, see ``at_border``. A frame longer than the stride
        has been cut to it.
        """
        frames, lengths = self._slots.take(limit)
        if not len(lengths):
            # An interface that went down leaves an error on the socket, for which poll would return at once for ever.
            self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        elif not self._checked:
            self._check_layout()
        return frames, lengths

    def release(self, n: int) -> None:
        """Give back the first ``n`` frames of those taken; views of them are void from now on."""
        self._slots.release(n)

    @property
    def at_border(self) -> bool:
        """Whether what was released last ended with a block of the ring, so that there may be more: ask again."""
        return self._slots.at_border

    def statistics(self) -> tuple[int, int]:
        """Frames since the start that came into the ring, and that were dropped because it was full."""
        packets, drops = struct.unpack("II", self._sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        self._received += packets - drops  # the kernel counts a dropped frame in both, and starts anew when asked
        self._dropped += drops
        return self._received, self._dropped

    def close(self) -> None:
        """Close the socket and unmap the ring, which stays mapped as long as there are views of it."""
        self._sock.close()
        del self._slots
        with contextlib.suppress(BufferError):
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_layout(self) -> None:
        block, run = self._slots.ready(1)
        found = int(self._slots.mac[block, run][0])
        if found != FRAME:
            raise RuntimeError(f"packet ring: the kernel puts frames at byte {found} of a slot, not at {FRAME}")
        self._checked = True


class Ring(PacketRing):
    """The RoCE frames of interface ``ifname``, in and out.

    ``mtu`` is the path MTU in bytes of payload, ``frames`` the depth of the receive ring in frames, ``send_buffer`` the
    bytes that may wait to be sent, ``program`` chooses the frames that come in. Those that this host sends do not.
    """

    def __init__(
        self,
        ifname: str,
        mtu: int,
        frames: int = 1024,
        send_buffer: int = SEND_BUFFER,
        program: bpf.Program = bpf.ROCE_ONLY,
    ) -> None:
        super().__init__(ifname, ETH_P_IP, max_frame_length(mtu), frames, program)
        self._sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, send_buffer)
        self.lost_on_dead_link = 0

    def send(self, frame: bytes | memoryview | U8) -> bool:
        """Send a whole frame; False, and the frame is not gone, if the interface has no room for it.

        Room comes back with POLLOUT if the send buffer was full, and silently if the queueing discipline was: wait for
        the former with a timeout. A frame sent while the link is down is gone, as on a cable, and counted in
        ``lost_on_dead_link``. OSError for whatever else, such as a frame longer than the interface's MTU.
        """
        try:
            self._sock.send(cast(bytes, frame))  # arrays are buffers; typeshed knows from Python 3.12 on
        except OSError as problem:
            if problem.errno in {errno.EAGAIN, errno.ENOBUFS}:
                return False
            if problem.errno != errno.ENETDOWN:
                raise
            self.lost_on_dead_link += 1
        return True
