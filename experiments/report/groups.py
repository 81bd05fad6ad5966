"""Operations sorted into what a figure shows: a panel per condition, a line per algorithm, a point per place.

A condition is what was set, but for what the figure's own axis shows: the fields that differ anywhere in the evidence,
and the kind of collective. Only conditions are drawn in which the axis has something to show.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from endpoints.collectives.kinds import KINDS
from experiments.report.evidence import Evidence, Operation
from experiments.stats import Estimate, estimate
from experiments.wording import tell_field

WORST_FIRST = ("overloaded", "unknown", "valid")


@dataclass(frozen=True)
class Cell:
    """The repetitions of one place on an axis."""

    x: float
    operations: tuple[Operation, ...]

    @property
    def verdict(self) -> str:
        """The worst of its operations'."""
        found = Counter(operation.verdict for operation in self.operations)
        return next((verdict for verdict in WORST_FIRST if verdict in found), min(found))

    @property
    def verdicts(self) -> str:
        """How many there are of each."""
        return ", ".join(
            f"{count} {name}" for name, count in sorted(Counter(o.verdict for o in self.operations).items())
        )

    def estimate(self, value: Callable[[Operation], float]) -> Estimate:
        """The median of a quantity over them."""
        return estimate([value(operation) for operation in self.operations])


@dataclass(frozen=True)
class Panel:
    """A condition: ``series`` has each algorithm's cells by rising x."""

    title: str
    kind: str
    series: dict[str, tuple[Cell, ...]]

    @property
    def places(self) -> tuple[float, ...]:
        """Every x that occurs."""
        return tuple(sorted({cell.x for cells in self.series.values() for cell in cells}))

    @property
    def size(self) -> int:
        """Operations in it."""
        return sum(len(cell.operations) for cells in self.series.values() for cell in cells)


def panels(
    evidence: Evidence,
    x: Callable[[Operation], float],
    own: Iterable[str],
    operations: Sequence[Operation] | None = None,
) -> list[Panel]:
    """The panels of a figure over ``x``, which shows the fields ``own``; those with most to show come first."""
    fields = [name for name in evidence.varying if name not in set(own)]
    chosen = evidence.counting if operations is None else operations
    found: dict[tuple[Hashable, ...], dict[str, dict[float, list[Operation]]]] = {}
    for operation in chosen:
        condition = (operation.kind, *(operation.setting.get(name) for name in fields))
        lines = found.setdefault(condition, defaultdict(lambda: defaultdict(list)))
        lines[operation.run.algorithm][x(operation)].append(operation)
    made = [
        Panel(
            _title(condition, fields),
            str(condition[0]),
            {name: tuple(Cell(at, tuple(cells[at])) for at in sorted(cells)) for name, cells in sorted(lines.items())},
        )
        for condition, lines in found.items()
    ]
    return sorted(made, key=lambda panel: (-len(panel.places), -panel.size, panel.title))


def with_a_choice(found: Sequence[Panel]) -> list[Panel]:
    """The panels in which x differs."""
    return [panel for panel in found if len(panel.places) > 1]


def alike(operations: Sequence[Operation], fields: Sequence[str]) -> dict[str, list[Operation]]:
    """Operations by what was set, told in words: the algorithm and ``fields``."""
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        told = [tell_field(name, operation.setting.get(name)) for name in fields]
        found.setdefault(", ".join([operation.run.algorithm, *told]), []).append(operation)
    return found


def typical(operations: Sequence[Operation]) -> Operation:
    """The one whose time is the median (the lower of two)."""
    return sorted(operations, key=lambda operation: operation.seconds)[(len(operations) - 1) // 2]


def _title(condition: Sequence[Any], fields: Sequence[str]) -> str:
    words = (tell_field(name, value) for name, value in zip(fields, condition[1:], strict=True))
    return ", ".join([KINDS[condition[0]].title, *words])
