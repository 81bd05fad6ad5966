"""UFTP's command lines and its status file, as text (manual pages uftp(1) and uftpd(1), version 4.10)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.external.site import Place

GROUP = "239.193.0.1"
"""Announced and sent on: an organization-local group (RFC 2365, 6.2) that no tree of ours has.

UFTP would take a second group for the data, which receivers join after the announcement; with one they are members
before anything is sent.
"""
NAME = "received"
"""What receivers call the file."""
BUFFER_BYTES = 4 << 20
"""Of every socket; less loses what comes while a host waits for its turn on the CPU."""
UFTP_HEADERS = 24
"""Bytes of UFTP's own headers before every block."""
IP_UDP_HEADERS = 28


def block_bytes(mtu: int) -> int:
    """The largest block that fits into an IP packet of ``mtu`` bytes."""
    return mtu - IP_UDP_HEADERS - UFTP_HEADERS


def rate_kbps(rate_bps: int) -> int:
    """The link's rate as a user would write it.

    To UFTP a kilobit has 1024 bits and Ethernet no header, so that it offers a link 2.7 % more than fits. The queues
    take that (they hold as much as 140 MB leave over) and keep the link busy while the sender is late: measured, UFTP
    is faster by 2 to 3 % than at the rate that fits exactly.
    """
    return max(1, rate_bps // 1000)


def receiver(place: Place, rank: int, folder: Path) -> list[str]:
    """A receiver in the foreground, which takes every file into ``folder``; ``-q``: no name is looked up."""
    return [
        *("uftpd", "-d", "-q", "-U", _identity(rank), "-I", place.interface, "-M", GROUP),
        *("-B", str(BUFFER_BYTES), "-D", str(folder)),
    ]


def sender(place: Place, receivers: Sequence[int], rate_bps: int, mtu: int, status: Path, file: Path) -> list[str]:
    """Sends ``file`` to the ranks ``receivers``, to all of them or not at all (``-q``)."""
    return [
        *("uftp", "-q", "-U", _identity(0), "-I", place.interface, "-M", GROUP, "-P", GROUP, "-t", "8"),
        *("-H", ",".join(map(_identity, receivers)), "-b", str(block_bytes(mtu)), "-R", str(rate_kbps(rate_bps))),
        *("-B", str(BUFFER_BYTES), "-S", str(status), "-D", NAME, str(file)),
    ]


def transfer_seconds(status: str, receivers: int) -> float | None:
    """The slowest receiver's time in a status file, from the first block to its word that it has all of them.

    None unless every one of them has got the file.
    """
    fields = [line.split(";") for line in status.splitlines()]
    times = [float(entry[6]) for entry in fields if entry[0] == "STATS" and entry[2] == "1"]
    return max(times) if len(times) == receivers else None


def _identity(rank: int) -> str:
    """UFTP's identity of a rank; 0 is none."""
    return f"0x{rank + 1:08x}"
