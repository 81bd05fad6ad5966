"""How faults are carried out: what every way of doing so offers, whatever it acts on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from experiments.faults.fault import Fault


class Mechanism(Protocol):
    """One way to carry faults out; ``number`` tells those of one run apart. Each method takes tens of milliseconds.

    All raise one of ``experiments.errors`` (or of ``topo``) for what cannot be done, and then nothing has been done.
    """

    name: str

    def takes(self, fault: Fault) -> bool:
        """Whether this is the way to carry it out."""

    def apply(self, number: int, fault: Fault) -> None:
        """Put it in force."""

    def observe(self, number: int) -> Mapping[str, int]:
        """Exact counts, by name, of what it has done since it was put in; empty where there is nothing to count."""

    def clear(self, number: int) -> Mapping[str, int]:
        """Put an end to it; the counts at its end."""
