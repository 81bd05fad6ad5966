"""Memory that an application and its NIC can both map: what backs an array, as a file descriptor and an offset."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class SharedMemory:
    """Anonymous memory by size. It has no name, so it is gone with the last process that maps it."""

    def __init__(self) -> None:
        self._descriptors: dict[int, int] = {}
        """Of what is still in use, by its address."""

    def allocate(self, size: int) -> npt.NDArray[np.uint8]:
        """So many bytes, zero at first. They are let go of with the last array in them."""
        descriptor = os.memfd_create("treecast-nic", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, max(1, size))
        array = np.frombuffer(mmap.mmap(descriptor, max(1, size)), np.uint8)
        self._descriptors[_address(array)] = descriptor
        weakref.finalize(array, self._forget, _address(array))
        return array[:size]

    @contextmanager
    def backing(self, array: Array) -> Iterator[tuple[int, int]]:
        """The descriptor of the file in which an array lies, and its offset there.

        ValueError if it is not contiguous, or is neither in what was allocated nor in a ``numpy.memmap`` of a file.
        """
        if not array.flags.c_contiguous:
            raise ValueError("register: the array is not contiguous")
        root: Any = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        offset = _address(array) - _address(root)
        if _address(root) in self._descriptors:
            yield self._descriptors[_address(root)], offset
        elif isinstance(root, np.memmap) and root.filename is not None:
            descriptor = os.open(root.filename, os.O_RDWR | os.O_CLOEXEC)
            try:
                yield descriptor, root.offset + offset
            finally:
                os.close(descriptor)
        else:
            raise ValueError("register: only what `allocate` gave, or a numpy.memmap of a file, can be shared")

    def _forget(self, address: int) -> None:
        os.close(self._descriptors.pop(address))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
