"""What was done by hand as a scenario that does it again: the operations, and the faults as its timeline. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.errors import UserError
from experiments.faults.book import Entry, State
from experiments.faults.timed import TimedFault
from experiments.faults.timeline import Clear, Step
from experiments.results import Run
from experiments.scenario import Scenario

LEFT_OUT = ("name", "shaped_bps", "algorithms", "size_bytes", "iterations", "warmup", "faults", "expect")
"""Fields of the console's scenario that its history decides, or that follow from others."""


def steps_of(entries: Iterable[Entry], operations: int) -> list[Step]:
    """The timeline of what was in force, over so many operations, numbered anew in its order."""
    ever = [entry for entry in entries if entry.state not in {State.REFUSED, State.MISSED, State.WAITING}]
    ever = [entry for entry in ever if entry.when.operation <= operations]
    number = {entry.number: at for at, entry in enumerate(sorted(ever, key=_order), 1)}
    steps = [Step(entry.when, entry.fault) for entry in sorted(ever, key=_order)]
    cleared = [(entry.cleared, number[entry.number]) for entry in ever if entry.cleared is not None]
    steps += [Step(when, Clear(number)) for when, number in cleared if when.operation <= operations]
    return sorted(steps, key=lambda step: (step.when.operation, step.when.at_ns))


def _order(entry: Entry) -> tuple[int, int, int]:
    return entry.when.operation, entry.when.at_ns, entry.number


def scenario_of(console: Scenario, done: Sequence[Run], entries: Iterable[Entry]) -> dict[str, Any]:
    """The fields of a scenario that repeats ``done``; :class:`UserError` where no single scenario does."""
    kinds = list(dict.fromkeys((run.algorithm, run.bytes_per_rank) for run in done))
    if not kinds:
        raise UserError("history: no operation has been run yet")
    if len(kinds) > 1:
        told = ", ".join(f"{name} of {size} bytes" for name, size in kinds)
        raise UserError(f"history: a scenario repeats operations of one kind and size; here were {told}")
    [(algorithm, size)] = kinds
    fields = json.loads(console.model_dump_json())
    kept = {key: value for key, value in fields.items() if key not in LEFT_OUT}
    faults = [TimedFault.of(step).model_dump(exclude_defaults=True) for step in steps_of(entries, len(done))]
    return {
        **kept,
        "algorithms": [algorithm],
        "size_bytes": size,
        "iterations": len(done),
        "warmup": 0,
        "faults": faults,
    }
