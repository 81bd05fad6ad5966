"""What a scenario expects of its results, so that it is a regression test, too: a metric, a bound, a tolerance. Pure.

A metric is a figure of each operation, and what is judged is its median over the operations of an algorithm.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from experiments.errors import UserError

PACKETS = ("sent", "received", "duplicates", "dropped_injected", "lost", "ring_dropped", "recovered")
METRICS = ("seconds", "limit_ratio", "wrong_bytes", *(f"packets.{name}" for name in PACKETS))
"""Figures of an operation, as ``summary.json`` has them."""

VERDICT = "fidelity.verdict"
"""The one metric that is a word: the worst verdict of the operations must be the one in ``equals``."""

Number = Annotated[float, Field(allow_inf_nan=False)]


class Expectation(BaseModel):
    """One expectation. ``at_least``, ``at_most`` or ``equals``; ``tolerance`` is a part of the bound, 0.02 for 2 %.

    ``algorithm`` says for which it holds; None is every one of the scenario's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    algorithm: str | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    equals: Number | str | None = None
    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.0

    @model_validator(mode="after")
    def _can_be_checked(self) -> Self:
        known = (*METRICS, VERDICT)
        if self.metric not in known:
            raise UserError(f"expect: unknown metric {self.metric!r}: known are {', '.join(known)}")
        bounds = [bound for bound in (self.at_least, self.at_most, self.equals) if bound is not None]
        if not bounds or (self.equals is not None and len(bounds) > 1):
            raise UserError(f"expect: {self.metric}: give at_least, at_most or both, or equals")
        if (self.metric == VERDICT) != isinstance(self.equals, str):
            raise UserError(f"expect: {self.metric}: a verdict equals a word, like valid; all else is a number")
        return self

    def complaint(self, found: float) -> str | None:
        """What is wrong with a value, None if nothing is."""
        slack = self.tolerance
        if self.at_least is not None and found < self.at_least - slack * abs(self.at_least):
            return f"{found:.6g}, expected at least {self.at_least:.6g}{self._within}"
        if self.at_most is not None and found > self.at_most + slack * abs(self.at_most):
            return f"{found:.6g}, expected at most {self.at_most:.6g}{self._within}"
        if isinstance(self.equals, float | int) and abs(found - self.equals) > slack * abs(self.equals):
            return f"{found:.6g}, expected {self.equals:.6g}{self._within}"
        return None

    @property
    def _within(self) -> str:
        return f" within {self.tolerance:.3g} of it" if self.tolerance else ""
