"""The report as files: a page that holds everything, pictures of every figure, tables, and the same bytes each time."""

from __future__ import annotations

import csv
import re
import xml.dom.minidom
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.errors import UserError
from experiments.judge import PHASES
from experiments.report.evidence import gather
from experiments.report.figure import known
from experiments.report.figures import phases
from experiments.report.write import write
from experiments.results import Summary
from experiments.sweep.journal import Journal, Record
from tests.unit.report.fabricated import leave, summary

BOTH = "mcast_allgather,mcast_broadcast"

EVERYTHING = [
    summary(algorithms=BOTH, ratios=(0.9, 0.91, 0.95)),
    summary(algorithms=BOTH, size_bytes="4KiB", ratios=(0.5,), verdict="unknown"),
    summary(algorithms=BOTH, loss=0.05, ratios=(0.7, 0.72), verdict="overloaded"),
    summary(algorithms=BOTH, topology="single,hosts=3"),
    summary(algorithms=BOTH, rate_bps="56G", scale=1120, size_bytes="1MiB"),
    summary(algorithms=BOTH, rate_bps="56G", scale=1120, topology="single,hosts=3", size_bytes="1MiB"),
    summary(algorithms=BOTH, rate_bps="56G", scale=1120),
    summary(ratios=(None,), seed=9),
]


def written(folder: Path, summaries: Sequence[Summary]) -> Path:
    """Leave summaries in a folder, and write the report on them into it."""
    leave(folder, summaries)
    write(gather(folder), folder)
    return folder


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on all of :data:`EVERYTHING`."""
    return written(tmp_path_factory.mktemp("study"), EVERYTHING)


def rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_is_on_the_page_or_said_to_be_left_out(everything: Path) -> None:
    page = (everything / "report.html").read_text()
    for figure in known():
        assert figure.title in page, figure.name


def test_the_page_holds_its_pictures_and_asks_no_other_machine(everything: Path) -> None:
    page = (everything / "report.html").read_text()
    without_pictures = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", page)
    assert len(page) > len(without_pictures)
    assert not re.search(r"https?:|//|@import|url\(|<script|<link", without_pictures)
    for path in re.findall(r'(?:href|src)="([^"]+)"', without_pictures):
        assert path.startswith("#") or (everything / path).is_file(), path
    assert page.count("<img") == len(list((everything / "figures").glob("*.svg")))


def test_pictures_are_there_as_png_and_svg_and_each_has_its_table(everything: Path) -> None:
    names = {path.stem for path in (everything / "figures").iterdir()}
    assert names >= {"throughput", "throughput-scaled", "ranks", "ranks-scaled", "loss", "phases", "traffic", "load"}
    for name in names:
        assert (everything / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert xml.dom.minidom.parse(str(everything / f"figures/{name}.svg")).getElementsByTagName("svg")
        assert rows(everything / f"tables/{name}.csv")


def test_the_same_results_give_the_same_bytes(everything: Path, tmp_path: Path) -> None:
    write(gather(everything), tmp_path / "again")
    for path in sorted((tmp_path / "again").rglob("*.*")):
        assert path.read_bytes() == (everything / path.relative_to(tmp_path / "again")).read_bytes(), path.name


def test_measured_and_scaled_are_different_figures_and_only_with_a_scale(everything: Path, tmp_path: Path) -> None:
    measured, scaled = rows(everything / "tables/throughput.csv"), rows(everything / "tables/throughput-scaled.csv")
    assert {row["median (Mbit/s)"] for row in measured if "56 Gbit" in row["condition"]}
    assert all("56 Gbit/s" in row["condition"] for row in scaled)
    assert all(float(row["median (Gbit/s)"]) == pytest.approx(0.9 * 56) for row in scaled)
    unscaled = write(gather(everything / "20270101T000000Z-run-0"), tmp_path)
    assert not [plate.name for plate in unscaled.plates if "scaled" in plate.name]


def test_overloaded_operations_stay_in_the_figures_and_failed_ones_are_listed(everything: Path) -> None:
    fidelity = {float(row["injected loss (%)"]): row["fidelity"] for row in rows(everything / "tables/loss.csv")}
    assert fidelity == {0.0: "3 valid", 5.0: "2 overloaded"}
    assert [row["error"] for row in rows(everything / "tables/failures.csv")] == ["h3 is gone"]
    assert {row["verdict"] for row in rows(everything / "tables/fidelity.csv")} == {"unknown", "overloaded"}
    page = (everything / "report.html").read_text()
    assert "because it is overloaded" in page
    assert "1 failed and are in no figure" in page


def test_every_operation_is_in_the_table_of_operations(everything: Path) -> None:
    table = rows(everything / "tables/operations.csv")
    assert len(table) == sum(len(one.runs) for one in EVERYTHING)
    [first] = [row for row in table if row["algorithm"] == "mcast_allgather" and row["iteration"] == "3"]
    assert float(first["part of the limit"]) == 0.95
    assert float(first["busbw (bytes/s)"]) == pytest.approx(0.95 * 50e6 / 8)


def test_a_single_run_leaves_out_what_it_has_no_data_for_and_says_what_would_bring_it(tmp_path: Path) -> None:
    folder = written(tmp_path, [summary()])
    made = write(gather(folder / "20270101T000000Z-run-0"), folder / "one")
    left = dict(made.left_out)
    assert "vary size_bytes" in left["Throughput over size"]
    assert "vary topology" in left["Time over ranks"]
    assert {plate.name for plate in made.plates} >= {"phases", "traffic", "load"}


def test_every_phase_that_is_reported_has_a_colour_of_its_own() -> None:
    assert set(phases._COLOURS) == set(PHASES)
    assert len(set(phases._COLOURS.values())) == len(PHASES)


def test_results_in_which_everything_failed_are_a_report_without_figures(tmp_path: Path) -> None:
    folder = written(tmp_path, [summary(ratios=(None,))])
    assert "h3 is gone" in (folder / "report.html").read_text()
    assert not (folder / "figures").exists()


def test_a_sweep_is_read_by_its_journal(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    leave(sweep / "runs", EVERYTHING[:3])
    first, second, _ = sorted((sweep / "runs").iterdir())
    journal = Journal(sweep / "points.jsonl")
    journal.append(Record(key="a", status="done", folder=f"runs/{first.name}"))
    journal.append(Record(key="b", status="done", folder=f"runs/{second.name}"))
    journal.append(Record(key="c", status="failed", error="the switches did not come up"))
    evidence = gather(sweep)
    assert {operation.folder for operation in evidence.operations} == {first, second}
    assert [lost.error for lost in evidence.lost] == ["the switches did not come up"]


def test_a_folder_without_results_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no results"):
        gather(tmp_path)
    (tmp_path / "points.jsonl").write_text("")
    with pytest.raises(UserError, match="no point of this sweep is over yet"):
        gather(tmp_path)


def test_a_damaged_summary_is_told_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(UserError, match=re.escape(str(tmp_path))):
        gather(tmp_path)


def test_text_from_results_is_not_taken_for_html(tmp_path: Path) -> None:
    folder = written(tmp_path, [summary(ratios=(None,), error="<b>h3</b> & friends")])
    assert "&lt;b&gt;h3&lt;/b&gt; &amp; friends" in (folder / "report.html").read_text()


def test_summaries_of_the_tests_are_summaries() -> None:
    assert all(Summary.from_json(one.to_json()) == one for one in EVERYTHING)
