"""A capture: every frame of one interface, both directions, into a pcapng file, complete to the last.

``python -m endpoints.io.capture --interface X --output F``. It writes a line to standard output once its socket is
bound, so that traffic can wait for it. When its standard input ends it drains the ring, writes the kernel's count of
drops, into the file and to standard output, and exits 0. The ring is looked at a few hundred times a second: a capture
must not cost what it measures.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO

from endpoints.io import pcapng
from endpoints.io.ring import PacketRing

ETH_P_ALL = 3
OUTGOING = 4
"""PACKET_OUTGOING of linux/if_packet.h."""
LONGEST = 9216
RING_FRAMES = 4096
LOOK_S = 0.02
TAKE_LIMIT = 512


class _CaptureRing(PacketRing):
    """A packet ring whose frames come with time and direction."""

    def write_ready(self, file: BinaryIO) -> int:
        """Write what has come; how many frames."""
        block, run = self._slots.ready(TAKE_LIMIT)
        slots = self._slots
        count = run.stop - run.start
        columns = zip(
            slots.frames[block, run],
            slots.captured[block, run].tolist(),
            slots.length[block, run].tolist(),
            slots.sec[block, run].tolist(),
            slots.nsec[block, run].tolist(),
            slots.pkttype[block, run].tolist(),
            strict=True,
        )
        for frame, captured, length, sec, nsec, kind in columns:
            way = pcapng.OUTBOUND if kind == OUTGOING else pcapng.INBOUND
            file.write(pcapng.packet(sec * 1_000_000_000 + nsec, frame[:captured].tobytes(), length, way))
        if count:
            self.release(count)
        return count


def capture(interface: str, output: Path) -> None:
    """Capture until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # our end is that of our input
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file, _CaptureRing(interface, ETH_P_ALL, LONGEST, RING_FRAMES) as ring:
        file.write(pcapng.section("treecast") + pcapng.interface(interface, LONGEST))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not select.select([0], [], [], LOOK_S)[0]:
            while ring.write_ready(file):
                pass
        while ring.write_ready(file):
            pass
        received, dropped = ring.statistics()
        file.write(pcapng.statistics(time.time_ns(), received, dropped))
        file.flush()
        os.fsync(file.fileno())
    sys.stdout.write(f"{dropped}\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interface", required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    capture(arguments.interface, arguments.output)


if __name__ == "__main__":
    main()
