"""What a run and its ranks under Open MPI say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from endpoints.collectives.kinds import KindName


@dataclass(frozen=True, slots=True)
class Order:
    """One collective: what this rank contributes, and the file that it receives into."""

    kind: KindName
    data: Path
    received: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """This rank's time from the end of a barrier to the end of the collective, and its CPU time in both."""

    seconds: float
    cpu_seconds: float
