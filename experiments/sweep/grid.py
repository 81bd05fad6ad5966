"""The points of a sweep: every combination of what varies, each as often as asked, in an order of chance.

A sweep is a scenario with two more keys::

    topology: fattree,k=4          # what all points share: any field of a scenario
    vary:                          # what differs: a list of values for any field
      size_bytes: [64KiB, 1MiB]
      loss: [0, 1%, 5%]
    repetitions: 5

``vary`` may also be a list of such grids, of which the sweep is the union. Repetition ``r`` adds ``r - 1`` to the seed,
so that other packets are hit. All first repetitions come before all second ones, each in a random order of its own
(randomised blocks): a drift of the machine meets every configuration alike, and half a sweep is a whole one with fewer
repetitions. The order follows from the seed and the points' keys.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.errors import UserError
from experiments.scenario import Scenario
from experiments.wording import tell_field

VARY, REPETITIONS = "vary", "repetitions"
MOST_POINTS = 10_000
KEY_DIGITS = 12
"""Hexadecimal digits of a key: two of 10,000 points are alike with a chance of one in five million."""

Resolve = Callable[[dict[str, Any]], Scenario]
"""From fields to a scenario; ``experiments.inputs.checked`` where input files decide sizes."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run to be made.

    ``varied`` has the fields that the grid set, as resolved. ``key`` is the point's identity, a digest of everything
    that the scenario says but its name; ``configuration`` is what the point's repetitions have in common.
    """

    scenario: Scenario
    varied: dict[str, Any]
    repetition: int
    configuration: str
    key: str

    @property
    def words(self) -> str:
        """The point in a line."""
        told = [tell_field(field, value) for field, value in self.varied.items()]
        return ", ".join([*told, f"repetition {self.repetition}"])


@dataclass(frozen=True, slots=True)
class Grid:
    """A sweep's name and its points, in the order in which they run."""

    name: str
    points: tuple[Point, ...]


def grid_of(values: Mapping[str, Any], name: str, resolve: Resolve = Scenario.of) -> Grid:
    """The grid that a file's ``values`` describe; ``name`` is for one that gives none.

    Raises :class:`UserError`, one line, for the first thing that is wrong.
    """
    shared = {key: value for key, value in values.items() if key not in (VARY, REPETITIONS)}
    if len(shared) == len(values):
        raise UserError(
            f"sweep {name}: has neither {VARY} nor {REPETITIONS}; write lines like `vary: {{loss: [0, 1%]}}`"
        )
    repetitions = values.get(REPETITIONS, 1)
    if not isinstance(repetitions, int) or isinstance(repetitions, bool) or not 1 <= repetitions <= MOST_POINTS:
        raise UserError(f"{REPETITIONS} {repetitions!r}: must be a whole number, at least 1")
    name = Scenario.of({"name": shared.get("name") or name}).name or ""
    found: dict[str, Point] = {}
    for changes in _combinations(values.get(VARY, {})):
        for repetition in range(1, repetitions + 1):
            point = _point(shared, changes, repetition, resolve)
            found.setdefault(point.key, point)
            if len(found) > MOST_POINTS:
                raise UserError(f"sweep {name}: more than {MOST_POINTS} points; split it")
    seed = next(iter(found.values())).scenario.seed
    return Grid(name, tuple(sorted(found.values(), key=lambda at: (at.repetition, _digest(f"{seed} {at.key}")))))


def _combinations(vary: Any) -> Iterator[dict[str, Any]]:
    """What each configuration changes, grid after grid."""
    grids = vary if isinstance(vary, list) else [vary]
    for grid in grids:
        if not isinstance(grid, dict):
            raise UserError(f"{VARY} {grid!r}: must be fields with lists of values, like `loss: [0, 1%]`")
        for field, alternatives in grid.items():
            if field not in Scenario.model_fields or field in ("name", "shaped_bps"):
                known = ", ".join(name for name in Scenario.model_fields if name not in ("name", "shaped_bps"))
                raise UserError(f"{VARY}: {field!r} cannot vary; what can is {known}")
            if alternatives in ([], None):
                raise UserError(f"{VARY}: {field} has no values; write a list like [1, 2]")
        lists = [value if isinstance(value, list) else [value] for value in grid.values()]
        for choice in itertools.product(*lists):
            yield dict(zip(grid, choice, strict=True))


def _point(shared: Mapping[str, Any], changes: Mapping[str, Any], repetition: int, resolve: Resolve) -> Point:
    fields = {**shared, **changes}
    try:
        once = resolve({**fields, "name": None})
    except UserError as problem:
        where = ", ".join(f"{field}: {value}" for field, value in changes.items())
        raise UserError(f"{problem}" + (f" (at {where})" if where else "")) from None
    seeded = once.model_copy(update={"seed": (once.seed + repetition - 1) % (1 << 64)})
    configuration = _digest(_canonical(once, exclude={"name", "seed"}))
    key = _digest(f"{repetition} {_canonical(seeded, exclude={'name'})}")[:KEY_DIGITS]
    scenario = seeded.model_copy(update={"name": f"{str(once.name)[:40]}-r{repetition}-{key}"})
    return Point(scenario, {field: getattr(scenario, field) for field in changes}, repetition, configuration, key)


def _canonical(scenario: Scenario, exclude: set[str]) -> str:
    return json.dumps(scenario.model_dump(mode="json", exclude=exclude), sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
