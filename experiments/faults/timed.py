"""A step of the timeline as a scenario file has it: ``{at: 1.5s, fault: "link e00-a00 loss 2% for 3s"}``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer

from experiments.faults.quantities import tell_time
from experiments.faults.timeline import Moment, Step, check_clears, parse_what
from experiments.fields import Count, Nanoseconds
from topo.fabric import Fabric


def _tell(at_ns: int) -> str:
    return tell_time(at_ns) if at_ns else "0s"


class TimedFault(BaseModel):
    """``at`` is after the start of an operation, by default the first; ``fault`` may also be ``clear 1``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: Annotated[Nanoseconds, PlainSerializer(_tell)]
    fault: str
    operation: Count = 1

    @classmethod
    def of(cls, step: Step) -> TimedFault:
        """The step in its usual words."""
        return cls(at=step.when.at_ns, fault=str(step.what), operation=step.when.operation)


def steps(entries: Iterable[TimedFault], fabric: Fabric) -> tuple[Step, ...]:
    """The entries' steps; :class:`experiments.errors.UserError` for what cannot be meant on this fabric."""
    found = tuple(Step(Moment(entry.at, entry.operation), parse_what(entry.fault, fabric)) for entry in entries)
    check_clears(found)
    return found
