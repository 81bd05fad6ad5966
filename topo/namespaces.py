"""Network namespaces: what is opened inside one stays there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000


@contextmanager
def network_of(pid: int | None) -> Iterator[None]:
    """This thread is in the network namespace of process ``pid`` (None: where it is); OSError if it cannot be."""
    if pid is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _enter(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)


def _enter(namespace: int) -> None:
    """setns(2) on a descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")
