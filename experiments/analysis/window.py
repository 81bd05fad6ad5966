"""A window that slides over a file: captures of any size are read in a constant amount of memory."""

from __future__ import annotations

from typing import Final, Protocol

SIZE: Final = 4 << 20
SPARE: Final = 128
"""Bytes behind the end that may be looked at, so that a header is read as a whole wherever its packet ends."""


class Source(Protocol):
    """A file opened without a buffer of its own, or bytes in memory."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill ``buffer`` as far as possible at once; how many bytes, 0 at the end."""


class Window:
    """Bytes ``data[:end]`` of ``file`` from byte ``offset`` on; what is behind ``end`` is not the file's.

    It starts empty; ``size`` is the number of bytes that it holds unless more are needed at once.
    """

    def __init__(self, file: Source, size: int = SIZE) -> None:
        self._file = file
        self._size = size
        self.data = bytearray(size + SPARE)
        self.end = 0
        self.offset = 0

    def advance(self, begin: int, need: int) -> bool:
        """Drop what is before ``begin`` and read on; whether at least ``need`` bytes are there now.

        Views of ``data`` are void from now on.
        """
        left = self.end - begin
        data = self.data
        if need > self._size:
            self._size = need
            data = bytearray(need + SPARE)
        data[:left] = self.data[begin : self.end]
        self.data, self.end = data, left
        self.offset += begin
        with memoryview(data) as view:
            while self.end < self._size and (count := self._file.readinto(view[self.end : self._size])):
                self.end += count
        return self.end >= need
