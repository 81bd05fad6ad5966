"""What was declared, what was applied, what was observed: the account of every fault at the end of a run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import sqrt

from experiments.faults.book import Entry, State
from experiments.faults.fault import Fault
from experiments.results import FaultRow

SIGMAS = 4
"""Standard deviations that a count of independent events may be off: one in 16,000 is further by chance."""

STRUCK = ("struck", "dropped")
"""What counts a fault's victims where nothing else, on the same link, takes some of them away before."""

LATE_S = 0.2
"""By when a fault has to be in force."""


def rows(entries: Iterable[Entry], origin_ns: int | None, mechanism: Callable[[Fault], str]) -> list[FaultRow]:
    """A row for each fault, times in seconds after ``origin_ns``; ``mechanism`` names what carried a fault out."""

    def seconds(at_ns: int | None) -> float | None:
        return None if at_ns is None or origin_ns is None else round((at_ns - origin_ns) / 1e9, 3)

    found = []
    for entry in entries:
        agrees, remark = _judge(entry)
        found.append(
            FaultRow(
                number=entry.number,
                declared="by hand" if entry.by_hand else str(entry.when),
                fault=str(entry.fault),
                mechanism=mechanism(entry.fault),
                applied_seconds=seconds(entry.applied_ns),
                ended_seconds=seconds(entry.ended_ns),
                outcome=entry.state.value,
                observed=dict(entry.observed or {}),
                agrees=agrees,
                remark=remark,
            )
        )
    return found


def _judge(entry: Entry) -> tuple[bool | None, str]:
    """Whether what was observed is what was declared, None where that cannot be told; and a word on it."""
    if entry.state in {State.REFUSED, State.MISSED}:
        return False, entry.why
    if entry.why:
        return False, entry.why
    if entry.due_ns is not None and entry.applied_ns is not None:
        late = (entry.applied_ns - entry.due_ns) / 1e9
        if late > LATE_S:
            return False, f"in force {late:.2f} s late"
    return _judge_counts(entry.fault, entry.observed or {})


def _judge_counts(fault: Fault, observed: Mapping[str, int]) -> tuple[bool | None, str]:
    packets, share = observed.get("packets"), fault.get("probability")
    struck = next((observed[name] for name in STRUCK if name in observed), None)
    if packets is None or struck is None:
        return None, ""
    if packets == 0:
        return None, "no packet came by"
    if isinstance(share, float) and fault.get("burst") is None:
        expected = share * packets
        margin = SIGMAS * sqrt(expected * (1 - share)) + 1
        if abs(struck - expected) > margin:
            return False, f"{expected:.0f} ± {margin:.0f} were to be expected"
    return True, ""
