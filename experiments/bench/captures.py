"""How fast a capture is read back, beside tshark and Scapy on the same file, in packets a second.

The file is what one of 16 hosts receives in some Allgathers, 4 KiB to a chunk, and in the page cache already: its size,
the disk's speed apart, is what any reader has to go through.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scapy.utils import RawPcapNgReader

from endpoints.core import layout
from endpoints.io import pcapng
from experiments.analysis.report import analyze
from experiments.analysis.trace import read_trace
from experiments.bench.target import judged

OPERATIONS = 16
PASSES = 3
SPACING_NS = 666_560
"""Of a 4 KiB chunk's frame at 50 Mbit/s."""
TARGET = 100_000
"""Packets a second, analysis included."""


def write_capture(path: Path, frames: Sequence[bytes]) -> int:
    """Write ``frames``, multicast chunks, once for each operation; how many packets that are."""
    with path.open("wb") as file:
        file.write(pcapng.section("treecast") + pcapng.interface("h1-eth0", 9216))
        count = 0
        for op in range(1, OPERATIONS + 1):
            for frame in frames:
                head, tail = frame[: layout.UD_IMM], frame[layout.UD_IMM + 1 :]
                file.write(pcapng.packet(count * SPACING_NS, head + bytes([op]) + tail, len(frame), pcapng.INBOUND))
                count += 1
    return count


def rate(count: int, read: Callable[[], object], passes: int = PASSES) -> float:
    """Packets a second of a reading of ``count`` packets, the best of some passes."""
    spent = []
    for _ in range(passes):
        before = time.perf_counter()
        read()
        spent.append(time.perf_counter() - before)
    return count / min(spent)


def read_with_tshark(path: Path) -> None:
    """The fields that ``analyze`` takes from a multicast chunk."""
    names = ("frame.time_epoch", "ip.src", "ip.dst", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.immdt")
    fields = [word for name in names for word in ("-e", name)]
    subprocess.run(
        ["tshark", "-n", "-r", str(path), "-T", "fields", *fields],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def read_with_scapy(path: Path) -> None:
    """The frames as bytes, none of them dissected."""
    with RawPcapNgReader(str(path)) as reader:
        for _ in reader:
            pass


def bench_captures(frames: Sequence[bytes]) -> None:
    """The table of readers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h1.pcapng"
        count = write_capture(path, frames)
        rates = {
            "read": rate(count, lambda: read_trace([path])),
            "read and analyzed": rate(count, lambda: analyze(read_trace([path]))),
        }
        if shutil.which("tshark"):
            rates["tshark, six fields"] = rate(count, lambda: read_with_tshark(path), 1)
        rates["Scapy, not dissected"] = rate(count, lambda: read_with_scapy(path), 1)
        megabytes = path.stat().st_size / 1e6
    ours = rates["read and analyzed"]
    table = Table(title=f"a capture of {count} packets, {megabytes:.0f} MB, read back")
    for column in ("reader", "packets/s", "analyze / this"):
        table.add_column(column, justify="left" if column == "reader" else "right")
    for reader, found in rates.items():
        table.add_row(reader, f"{found:,.0f}", f"{ours / found:.1f}")
    Console().print(table)
    print(judged(f"{TARGET:,} packets/s, analyzed", f"{ours:,.0f}", met=ours >= TARGET))
