"""A report onto disk: ``report.html``, ``figures/*.png`` and ``*.svg``, ``tables/*.csv``, each whole or not at all."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.errors import UserError
from experiments.folder import Owner, ResultFolder
from experiments.report import overview, style
from experiments.report.evidence import Evidence
from experiments.report.figure import NothingToShow, Plate, Table, known
from experiments.report.page import Section, render

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

PAGE = "report.html"
FIGURES, TABLES = "figures", "tables"


@dataclass(frozen=True)
class Written:
    """A report that is on disk. ``left_out`` says which figures are not in it, and why."""

    page: Path
    plates: tuple[Plate, ...]
    left_out: tuple[tuple[str, str], ...]


def write(evidence: Evidence, folder: Path) -> Written:
    """Write the report on ``evidence`` into ``folder``; :class:`UserError` where that is not possible."""
    plates: list[Plate] = []
    left_out: list[tuple[str, str]] = []
    for figure in known():
        try:
            plates += figure.make(evidence)
        except NothingToShow as why:
            left_out.append((figure.title, str(why)))
    try:
        files = ResultFolder(folder, Owner.calling(os.environ))
        folder.mkdir(parents=True, exist_ok=True)
        sections = [*_overview(evidence, files), *(_section(plate, files) for plate in plates)]
        facts = overview.shared(evidence) if evidence.operations else []
        page = files.write(PAGE, render(_title(evidence), _lead(evidence), facts, sections, left_out))
    except OSError as problem:
        raise UserError(
            f"report: {str(folder)!r} cannot be written ({problem.strerror}); choose another folder with --output"
        ) from None
    return Written(page, tuple(plates), tuple(left_out))


def _title(evidence: Evidence) -> str:
    return evidence.folder.resolve().name


def _lead(evidence: Evidence) -> str:
    """How much there is, and how far to believe it, in two sentences."""
    verdicts = Counter(summary.fidelity.verdict for summary in evidence.summaries.values())
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    failed = len(evidence.operations) - len(evidence.counting) + len(evidence.lost)
    words = f"{len(evidence.operations)} operations in {len(evidence.summaries)} runs ({told})."
    return f"{words} {failed} failed and are in no figure." if failed else words


def _overview(evidence: Evidence, files: ResultFolder) -> list[Section]:
    parts = (
        ("settings", "Settings", "Medians of each setting's operations, and intervals.", overview.settings, True),
        ("fidelity", "Fidelity", "Runs that are not simply valid, and why. They are marked in every figure.",
         overview.fidelity, True),
        ("failures", "Failures", "What failed, and why.", overview.failures, True),
        ("skipped", "Skipped", "Programs that were asked for and left out.", overview.skipped, True),
        ("operations", "Operations", "Every operation that was measured.", overview.operations, False),
    )  # fmt: skip
    sections = []
    for name, title, caption, make, shown in parts:
        table = make(evidence)
        if table.rows:
            link = _write_table(files, name, table)
            sections.append(Section(name, title, caption, table, files=[link], open=shown))
    return sections


def _section(plate: Plate, files: ResultFolder) -> Section:
    links = []
    picture = None
    if plate.drawing is not None:
        place = files.subfolder(FIGURES)
        picture = image(plate.drawing, "svg")
        for kind, content in (("PNG", image(plate.drawing, "png")), ("SVG", picture)):
            path = place / f"{plate.name}.{kind.lower()}"
            files.write_bytes(str(path.relative_to(files.path)), content)
            links.append((kind, f"{FIGURES}/{path.name}"))
    links.append(_write_table(files, plate.name, plate.table))
    return Section(plate.name, plate.title, plate.caption, plate.table, picture, links, open=plate.drawing is None)


def _write_table(files: ResultFolder, name: str, table: Table) -> tuple[str, str]:
    files.subfolder(TABLES)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    files.write(f"{TABLES}/{name}.csv", text.getvalue())
    return "CSV", f"{TABLES}/{name}.csv"


def image(drawing: Drawing, kind: str) -> bytes:
    """A drawing as a file of ``kind``, png or svg, that depends on nothing but the drawing."""
    held = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with style.in_style():
        drawing.savefig(held, format=kind, metadata=metadata)
    return held.getvalue()
