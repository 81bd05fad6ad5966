"""The book of faults: what was declared, what of it is live, what has become of it. Time is an argument (monotonic ns).

The book decides when something is due and keeps what was observed; somebody else carries it out and reports back. From
WAITING a fault becomes LIVE, or DONE if it is done at once and for good, such as a kill; REFUSED if it could not be put
in; MISSED if its clearing or the end came first. From LIVE it becomes CLEARED, EXPIRED, or KEPT until the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from experiments.errors import UserError
from experiments.faults.fault import Fault
from experiments.faults.timeline import Clear, Moment, Step


class State(Enum):
    """What has become of a fault."""

    WAITING = "waiting"
    LIVE = "live"
    CLEARED = "cleared"
    EXPIRED = "expired"
    KEPT = "until the end"
    DONE = "done"
    REFUSED = "refused"
    MISSED = "not reached"


OPEN = frozenset({State.WAITING, State.LIVE})
"""What may still change."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A numbered fault. ``by_hand``: it was put in while the run was on, not by a timeline.

    ``when`` is where it stands in a timeline, and ``cleared`` its clearing; ``observed`` counts by name.
    """

    number: int
    fault: Fault
    when: Moment
    by_hand: bool = False
    state: State = State.WAITING
    due_ns: int | None = None
    applied_ns: int | None = None
    ended_ns: int | None = None
    cleared: Moment | None = None
    observed: Mapping[str, int] | None = None
    why: str = ""

    @property
    def expires_ns(self) -> int | None:
        """When it has lasted as long as it was given."""
        if self.applied_ns is None or self.fault.duration_ns is None:
            return None
        return self.applied_ns + self.fault.duration_ns


@dataclass(frozen=True, slots=True)
class Task:
    """What is due: the fault ``number`` is to be put in, or to be ended as ``ending`` says."""

    due_ns: int
    number: int
    ending: State | None


class Book:
    """See the module. Numbers count from 1 and are never used again."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._entries: dict[int, Entry] = {}
        self._clears: list[tuple[Moment, int, int | None]] = []
        """Clearings to come: when, of which fault, and the time once that is known."""
        self._begun: dict[int, int] = {}
        self._running = False
        for step in steps:
            if isinstance(step.what, Clear):
                self._clears.append((step.when, step.what.number, None))
            else:
                self._declare(step.what, step.when, None)

    @property
    def entries(self) -> list[Entry]:
        """All of them, in order."""
        return list(self._entries.values())

    @property
    def live(self) -> list[Entry]:
        """Those that are in force."""
        return [entry for entry in self._entries.values() if entry.state is State.LIVE]

    @property
    def origin_ns(self) -> int | None:
        """When the first operation began."""
        return min(self._begun.values(), default=None)

    def entry(self, number: int) -> Entry:
        """The fault of that number; :class:`UserError` where there is none."""
        if number not in self._entries:
            known = f"they are 1 to {len(self._entries)}" if self._entries else "there are none"
            raise UserError(f"no fault {number}: {known}")
        return self._entries[number]

    def add(self, fault: Fault, now_ns: int) -> Entry:
        """Declare a fault that is due at once."""
        return self._declare(fault, self.moment(now_ns), now_ns)

    def operation_begins(self, operation: int, now_ns: int) -> None:
        """The operation of that number, counted from 1, begins: the times of its steps are known now."""
        self._begun[operation] = now_ns
        self._running = True
        for entry in self.entries:
            if entry.when.operation == operation and entry.state is State.WAITING and not entry.by_hand:
                self._put(entry, due_ns=now_ns + entry.when.at_ns)
        self._clears = [
            (when, number, now_ns + when.at_ns if when.operation == operation else due)
            for when, number, due in self._clears
        ]

    def operation_ends(self) -> None:
        """The operation is over."""
        self._running = False

    def moment(self, now_ns: int) -> Moment:
        """A time as a step gives it: after the beginning of an operation; between two, the beginning of the next."""
        operation = max(self._begun, default=0)
        if not self._running:
            return Moment(0, operation + 1)
        return Moment(max(0, now_ns - self._begun[operation]), operation)

    def due(self, now_ns: int) -> list[Task]:
        """What is to be done now, in the order of its time; of the same time, what ends goes first."""
        tasks = [task for task in self._tasks() if task.due_ns <= now_ns]
        return sorted(tasks, key=lambda task: (task.due_ns, task.ending is None, task.number))

    def next_due(self) -> int | None:
        """When :meth:`due` has something next, as far as that is known."""
        return min((task.due_ns for task in self._tasks()), default=None)

    def applied(self, number: int, now_ns: int) -> Entry:
        """It is in force, or done."""
        entry = self._open(number)
        state = State.LIVE if entry.fault.form.lasting else State.DONE
        return self._put(entry, state=state, applied_ns=now_ns)

    def refused(self, number: int, why: str) -> Entry:
        """It could not be put in."""
        return self._put(self._open(number), state=State.REFUSED, why=why)

    def ended(self, number: int, state: State, now_ns: int, why: str = "") -> Entry:
        """It is no longer in force: cleared, expired, or kept until the end; one that still waited is missed."""
        entry = self._open(number)
        self._clears = [(when, other, due) for when, other, due in self._clears if other != number]
        if entry.state is State.WAITING:
            return self._put(entry, state=State.MISSED, why=why or f"{state.value} before it was put in")
        cleared = self.moment(now_ns) if state is State.CLEARED else None
        return self._put(entry, state=state, ended_ns=now_ns, cleared=cleared, why=why)

    def observed(self, number: int, counters: Mapping[str, int]) -> Entry:
        """What it has done so far."""
        return self._put(self.entry(number), observed=dict(counters))

    def _tasks(self) -> list[Task]:
        tasks = []
        for entry in self._entries.values():
            if entry.state is State.WAITING and entry.due_ns is not None:
                tasks.append(Task(entry.due_ns, entry.number, None))
            if entry.state is State.LIVE and entry.expires_ns is not None:
                tasks.append(Task(entry.expires_ns, entry.number, State.EXPIRED))
        for _, number, due in self._clears:
            if due is not None and self._entries[number].state in OPEN:
                tasks.append(Task(due, number, State.CLEARED))
        return tasks

    def _declare(self, fault: Fault, when: Moment, due_ns: int | None) -> Entry:
        entry = Entry(len(self._entries) + 1, fault, when, due_ns is not None, due_ns=due_ns)
        self._entries[entry.number] = entry
        return entry

    def _open(self, number: int) -> Entry:
        entry = self.entry(number)
        if entry.state not in OPEN:
            raise UserError(f"fault {number} ({entry.fault}): it is over, {entry.state.value}")
        return entry

    def _put(self, entry: Entry, **changes: object) -> Entry:
        entry = self._entries[entry.number] = replace(entry, **changes)  # type: ignore[arg-type]  # named above
        return entry
