"""From a file's first bytes to the reader that understands it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.analysis.packets import Reader
from experiments.analysis.pcap import PcapReader, order_of
from experiments.analysis.pcapng import SECTION, PcapngReader
from experiments.analysis.window import SIZE, Window
from experiments.errors import UserError


@contextmanager
def opened(path: Path, size: int = SIZE) -> Iterator[Reader]:
    """The reader of a capture; :class:`UserError` for what is none. ``size`` is the window's, in bytes."""
    try:
        file = path.open("rb", buffering=0)
    except OSError as problem:
        raise UserError(f"capture {str(path)!r}: cannot be read ({problem.strerror})") from None
    with file:
        window = Window(file, size)
        whole = window.advance(0, 4)
        head = bytes(window.data[:4])
        if whole and head == struct.pack("I", SECTION):
            yield PcapngReader(window)
        elif whole and order_of(head) is not None:
            yield PcapReader(window)
        elif window.end:
            raise UserError(f"capture {str(path)!r}: begins with {head[: window.end].hex()}, neither pcapng nor pcap")
        else:
            raise UserError(f"capture {str(path)!r}: is empty, not even a header is in it")
