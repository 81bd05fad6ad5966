"""What a figure is: a module of ``experiments/report/figures`` with a ``FIGURE``, found by walking the folder.

A figure makes plates from evidence, or says why it cannot. A plate has a drawing, a caption and the table of what is
drawn; one without a drawing is a table. What was measured and what it means at an emulated rate are different plates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from experiments.report import figures as folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from experiments.report.evidence import Evidence

Value = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Columns and rows; numbers are numbers, so that a CSV file has all their digits."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]


@dataclass(frozen=True)
class Plate:
    """One picture (or table) of a report; ``name`` is that of its files."""

    name: str
    title: str
    caption: str
    table: Table
    drawing: Drawing | None = None


class NothingToShow(Exception):
    """There is no data for a figure; the message says what would bring some."""


@dataclass(frozen=True)
class Figure:
    """A kind of figure. ``place`` orders them on the page."""

    name: str
    title: str
    place: int
    make: Callable[[Evidence], list[Plate]]


def known() -> list[Figure]:
    """Every figure, in the order of the page."""
    found = [import_module(f"{folder.__name__}.{info.name}").FIGURE for info in iter_modules(folder.__path__)]
    names = [figure.name for figure in found]
    if len(set(names)) < len(names):
        raise RuntimeError(f"two figures have the same name: {sorted(names)}")
    return sorted(found, key=lambda figure: (figure.place, figure.name))
