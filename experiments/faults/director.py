"""Carries the book of faults out while the run goes on: a thread that waits for what is due next, and no other.

Whoever puts faults in by hand does it in his own thread; both hold the same lock. Where a time is needed it is that of
the endpoints' clock, so that a step at 1.5 s is 1.5 s after the ranks' common start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Self

from experiments.errors import EnvironmentMissing, TreecastError
from experiments.faults.book import Book, Entry, State, Task
from experiments.faults.disturbed import disturbed
from experiments.faults.fault import Fault
from experiments.faults.mechanism import Mechanism
from experiments.faults.reconcile import rows
from experiments.results import FaultRow
from topo.ovs import OvsError
from topo.tc import BatchError

_FAILED = (TreecastError, BatchError, OvsError, OSError)
"""What mechanisms raise."""


class Director:
    """A context manager: entering starts the thread, leaving puts an end to every fault that is still in force."""

    def __init__(self, book: Book, mechanisms: Sequence[Mechanism]) -> None:
        self._book = book
        self._mechanisms = tuple(mechanisms)
        self._operations = 0
        self._changed = threading.Condition(threading.RLock())
        self._over = False
        self._ended_ns: int | None = None
        self._thread = threading.Thread(target=self._work, name="faults", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def operation_begins(self, at_ns: int) -> None:
        """The next operation begins at that time, which is now or soon."""
        with self._changed:
            self._operations += 1
            self._book.operation_begins(self._operations, at_ns)
            self._changed.notify()

    def operation_ends(self) -> None:
        """The operation is over; what is put in by hand from now on belongs before the next."""
        with self._changed:
            self._book.operation_ends()
            self._ended_ns = time.monotonic_ns()

    @property
    def took_ns(self) -> int:
        """Nanoseconds from the start of the first operation to the end of the last; 0 where none has ended."""
        origin, ended = self._book.origin_ns, self._ended_ns
        return 0 if origin is None or ended is None else ended - origin

    def add(self, fault: Fault) -> Entry:
        """Put a fault in force; the error that says why not if that cannot be done."""
        with self._changed:
            number = self._book.add(fault, time.monotonic_ns()).number
            self._put_in(number)
            self._changed.notify()
            return self._book.entry(number)

    def clear(self, number: int) -> Entry:
        """Put an end to a fault."""
        with self._changed:
            self._book.entry(number)
            return self._end(number, State.CLEARED)

    def entries(self) -> list[Entry]:
        """All faults, those in force with their counts as they are now."""
        with self._changed:
            for entry in self._book.live:
                self._look(entry)
            return self._book.entries

    def disturbed(self, since_ns: int, until_ns: int) -> dict[str, str]:
        """The fault that stopped or killed a host's endpoint in that time, by host."""
        with self._changed:
            return disturbed(self._book.entries, since_ns, until_ns)

    def rows(self) -> list[FaultRow]:
        """The account of every fault so far."""
        return rows(self.entries(), self._book.origin_ns, self.mechanism_name)

    def mechanism_name(self, fault: Fault) -> str:
        """The name of what carries a fault out, "none" where nothing does."""
        found = self._found(fault)
        return "none" if found is None else found.name

    def _mechanism(self, fault: Fault) -> Mechanism:
        """What carries a fault out; :class:`EnvironmentMissing` where nothing does."""
        found = self._found(fault)
        if found is None:
            raise EnvironmentMissing(f"fault {str(fault)!r}: nothing on this machine can do that")
        return found

    def _found(self, fault: Fault) -> Mechanism | None:
        return next((mechanism for mechanism in self._mechanisms if mechanism.takes(fault)), None)

    def finish(self) -> list[Entry]:
        """No more faults: what is in force is ended, what has not come is missed. All entries."""
        with self._changed:
            self._over = True
            self._changed.notify()
            for entry in self._book.entries:
                if entry.state is State.LIVE:
                    self._end(entry.number, State.KEPT)
                elif entry.state is State.WAITING:
                    self._book.ended(entry.number, State.MISSED, time.monotonic_ns(), "the run was over before")
        if self._thread.ident is not None:
            self._thread.join()
        return self._book.entries

    def _work(self) -> None:
        with self._changed:
            while not self._over:
                now = time.monotonic_ns()
                for task in self._book.due(now):
                    self._do(task)
                due = self._book.next_due()
                self._changed.wait(None if due is None else max(0.0, (due - time.monotonic_ns()) / 1e9))

    def _do(self, task: Task) -> None:
        if task.ending is not None:
            self._end(task.number, task.ending)
            return
        try:
            self._put_in(task.number)
        except _FAILED:
            return  # the book has it

    def _put_in(self, number: int) -> None:
        fault = self._book.entry(number).fault
        try:
            self._mechanism(fault).apply(number, fault)
        except _FAILED as problem:
            self._book.refused(number, str(problem))
            raise
        self._book.applied(number, time.monotonic_ns())

    def _end(self, number: int, state: State) -> Entry:
        entry = self._book.entry(number)
        why = ""
        if entry.state is State.LIVE:
            try:
                self._book.observed(number, self._mechanism(entry.fault).clear(number))
            except _FAILED as problem:
                why = str(problem)
        return self._book.ended(number, state, time.monotonic_ns(), why)

    def _look(self, entry: Entry) -> None:
        try:
            self._book.observed(entry.number, self._mechanism(entry.fault).observe(entry.number))
        except _FAILED:
            return  # what was seen last stands
