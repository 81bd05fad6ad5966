"""``treecast analyze`` as a user calls it: what it prints, where it says no, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments import cli
from experiments.analysis.report import Analysis
from tests.unit.analysis.run import CHUNKS, Folder, chunk, read


@dataclass(frozen=True)
class Ran:
    code: object
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object) -> Ran:
        monkeypatch.setattr("sys.argv", ["treecast", "analyze", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Ran(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """h3's link: chunk 5 of h1 is missing and READ from h2."""
    frames = [(index, chunk(root, index)) for index in range(CHUNKS) for root in range(4) if (root, index) != (0, 5)]
    return Folder(tmp_path).capture("h3", "h3-eth0", [*frames, *enumerate(read(2, 1, 5, 1, psn=9), 30)])


def test_a_folder_of_results_means_its_captures(command: Command, capture: Path) -> None:
    ran = command(capture.parent.parent)
    assert (ran.code, ran.err) == (0, "")
    assert "somewhere before h3" in ran.out
    assert command(capture).out == ran.out


def test_the_json_is_the_schema_s(command: Command, capture: Path) -> None:
    ran = command(capture, "--json")
    result = Analysis.model_validate_json(ran.out)
    assert ran.err == ""
    assert [(entry.requester, entry.supplier, entry.psns) for entry in result.recoveries] == [("h3", "h2", [(5, 5)])]
    assert result.summary == str(capture.parent.parent / "summary.json")
    assert json.loads(ran.out)["version"] == 1


def test_no_row_of_a_table_is_cut_short(command: Command, capture: Path) -> None:
    lines = command(capture, "--plain").out.splitlines()
    assert not any("…" in line for line in lines)
    (loss,) = [line for line in lines if "somewhere" in line]
    assert loss.split() == ["1", "h1", "somewhere", "before", "h3", "1", "5"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_figure_is_drawn(command: Command, capture: Path, tmp_path: Path, suffix: str) -> None:
    figure = tmp_path / f"arrivals.{suffix}"
    ran = command(capture, "--figure", figure, "--operation", 1)
    assert (ran.code, ran.err) == (0, "")
    assert figure.stat().st_size > 5000


def test_the_same_captures_give_the_same_svg(command: Command, capture: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.svg", tmp_path / "other.svg"
    for figure in (one, other):
        command(capture, "--figure", figure)
    assert one.read_bytes() == other.read_bytes()
    assert "recovered by READ" in one.read_text()


def test_without_a_summary_it_says_what_cannot_be_told(command: Command, capture: Path) -> None:
    (capture.parent.parent / "summary.json").unlink()
    ran = command(capture)
    assert ran.code == 0
    assert ran.err.startswith("treecast: no summary.json beside the captures: ")


def test_a_capture_that_is_cut_short_is_told_in_one_line(command: Command, capture: Path) -> None:
    whole = capture.read_bytes()
    capture.write_bytes(whole[:-5])
    ran = command(capture)
    assert ran.code == 0
    (line,) = ran.err.splitlines()
    assert "ends in the middle of a packet" in line
    assert str(capture) in line


def refused(ran: Ran, *words: str) -> None:
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert all(word in line for word in words), line


def test_bad_input_is_refused_in_one_line(command: Command, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("not a capture")
    refused(command())
    refused(command(tmp_path / "absent"), "absent", "No such file")
    refused(command(tmp_path / "empty"), "empty", "--capture h1")
    refused(command(tmp_path / "text"), "text", "neither pcapng nor pcap")
    refused(command(capture, "--figure", tmp_path / "x.gif"), "x.gif", ".png, .svg or .pdf")
    refused(command(capture, "--figure", tmp_path / "no/x.png"), "no folder")
    refused(command(capture, "--figure", tmp_path / "x.png", "--operation", 7), "operation 7", "hold 1")
    (tmp_path / "summary.json").write_text("{}")
    refused(command(capture), "summary.json")


def test_captures_of_different_runs_are_not_compared(command: Command, capture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    refused(command(capture, Folder(other).capture("h1", "h1-eth0", [])), "2 runs")


def test_a_figure_of_captures_without_multicast_is_refused(command: Command, capture: Path, tmp_path: Path) -> None:
    empty = Folder.__new__(Folder)
    empty.path = tmp_path
    file = empty.capture("h1", "h1-eth0", [])
    refused(command(file, "--figure", tmp_path / "x.png"), "no multicast chunk")
