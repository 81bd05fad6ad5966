"""The page of a report: one HTML file that holds all of it, pictures too, and asks no other machine for anything."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment, StrictUndefined

from experiments.report.figure import Table, Value

MOST_ROWS = 200
"""Rows of a table on the page; a file has all."""


@dataclass(frozen=True)
class Section:
    """A part of the page. ``svg`` is a picture, ``files`` (name, path) lead to what is beside the page."""

    anchor: str
    title: str
    caption: str
    table: Table
    svg: bytes | None = None
    files: Sequence[tuple[str, str]] = ()
    open: bool = False

    @property
    def source(self) -> str:
        """The picture as a data URI."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg or b"").decode()

    @property
    def rows(self) -> list[list[str]]:
        """The table as text, as far as the page shows it."""
        return [[told(value) for value in row] for row in self.table.rows[:MOST_ROWS]]

    @property
    def hidden(self) -> int:
        """Rows that only the file has."""
        return max(0, len(self.table.rows) - MOST_ROWS)


def told(value: Value) -> str:
    """A value of a table as people read it: four digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def render(
    title: str,
    lead: str,
    facts: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    left_out: Sequence[tuple[str, str]],
) -> str:
    """The page's text."""
    template = resources.files("experiments.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        title=title, lead=lead, facts=facts, sections=sections, left_out=left_out
    )
