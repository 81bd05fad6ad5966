"""Which hosts' endpoints faults stopped, slowed or killed in a span of time: what these did late is the faults' doing.

Pure: from the book's entries. Times in monotonic nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.faults.book import Entry

PROCESS = frozenset({"kill", "slow", "stop"})
"""Kinds of faults of a host that act on the endpoint's process."""


def disturbed(entries: Iterable[Entry], since_ns: int, until_ns: int) -> dict[str, str]:
    """By host, the first such fault that was in force at some time from ``since_ns`` to ``until_ns``: ``fault 1``."""
    found: dict[str, str] = {}
    for entry in entries:
        fault, begun, ended = entry.fault, entry.applied_ns, entry.ended_ns
        if fault.target != "host" or fault.kind not in PROCESS or begun is None:
            continue
        if begun <= until_ns and (ended is None or ended >= since_ns):
            found.setdefault(fault.place, f"fault {entry.number} ({fault})")
    return found
