"""The points at which packets were captured: interfaces, what was counted there, and whose links they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.analysis.frames import Bool, Decoded, Frames
from experiments.analysis.packets import ETHERNET, IN, OUT, UNKNOWN, Interface, Packets

_PORT = re.compile(r"(\w+)-eth(\d+)")
"""An interface of ours: its node and its port (``topo.fabric.interface``)."""
_HOST = re.compile(r"h(\d+)")


@dataclass(slots=True)
class Point:
    """An interface that was captured; ``host`` is the host whose own link it is, None if it is no host's or unknown.

    ``short`` counts frames captured too short to be read, ``foreign`` packets that are no Ethernet frames, ``dropped``
    what the capturing side says that it missed; ``cut`` says that the file ends in the middle of a packet.
    """

    name: str
    interface: Interface
    file: Path
    host: int | None = None
    packets: int = 0
    roce: int = 0
    short: int = 0
    foreign: int = 0
    first_ns: int = 0
    last_ns: int = 0
    cut: bool = False

    @property
    def ethernet(self) -> bool:
        """Whether its packets are Ethernet frames."""
        return self.interface.link_type == ETHERNET

    @property
    def port(self) -> tuple[str, int] | None:
        """(node, port) of an interface of ours."""
        match = _PORT.fullmatch(self.interface.name or "")
        return (match[1], int(match[2])) if match else None

    def count(self, packets: Packets, its: Bool, decoded: Decoded) -> None:
        """Add the packets of a batch that are ``its``, of which there is one at least."""
        times = packets.time_ns[its]
        first, last = int(times.min()), int(times.max())
        self.first_ns = min(first, self.first_ns) if self.packets else first
        self.last_ns = max(last, self.last_ns) if self.packets else last
        self.packets += len(times)
        if self.ethernet:
            self.roce += int(np.count_nonzero(decoded.rows & its))
            self.short += int(np.count_nonzero(decoded.short & its))
        else:
            self.foreign += len(times)

    def remarks(self) -> list[str]:
        """What is wrong with it, if anything is."""
        counts = {
            "packets are missing, the capturing side had no room for them": self.interface.dropped,
            "RoCEv2 frames were captured too short to be read": self.short,
            "packets are left out, they are no Ethernet frames": self.foreign,
        }
        return [f"capture {self.name}: {count} {what}" for what, count in counts.items() if count]


def name_points(points: Sequence[Point]) -> None:
    """By file where a file has one interface, else by interface; a number behind it where two would be alike."""
    files = [point.file for point in points]
    used: set[str] = set()
    for point in points:
        one = files.count(point.file) == 1
        base = point.file.stem if one else (point.interface.name or point.file.stem)
        name = next(name for name in _numbered(base, len(points)) if name not in used)
        point.name = name
        used.add(name)


def _numbered(base: str, most: int) -> list[str]:
    return [base, *(f"{base}-{number}" for number in range(2, most + 1))]


def place_hosts(points: Sequence[Point], frames: Frames) -> None:
    """Find each point's host: by the interface's name, or else the one host with a part in all unicast frames.

    Where directions were not told, they follow from that.
    """
    for index, point in enumerate(points):
        mine = frames["point"] == index
        if point.port is not None:
            match = _HOST.fullmatch(point.port[0])
            point.host = int(match[1]) - 1 if match else None
        else:
            point.host = _common_end(frames[mine & (frames["src"] >= 0) & (frames["dst"] >= 0)])
        if point.host is not None:
            untold = mine & (frames["direction"] == UNKNOWN)
            frames["direction"][untold] = np.where(frames["src"][untold] == point.host, OUT, IN)


def _common_end(unicast: Frames) -> int | None:
    pairs = np.unique(unicast["src"].astype(np.int64) << 32 | unicast["dst"]).tolist()
    common = set.intersection(*({pair >> 32, pair & 0xFFFFFFFF} for pair in pairs)) if pairs else set()
    return common.pop() if len(common) == 1 else None
