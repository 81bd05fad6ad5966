"""What a user sees at the end: whole figures, also where the terminal is narrow."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.measure import Measurement

from experiments.results import Fidelity, Packets, PlatformInfo, Run, Summary
from experiments.scenario import Scenario
from experiments.ui import fidelity_lines, print_summary, summary_table


def summary(**fields: object) -> Summary:
    scenario = Scenario.of({"size_bytes": "64KiB", **fields})
    run = Run(
        algorithm="mcast_allgather", iteration=1, ranks=16, bytes_per_rank=65536, verified=True, seconds=15.1354,
        limit_seconds=13.3, limit_ratio=0.879, packets=Packets(recovered=12345),
        link_bytes={"h1->e00": 101}, link_bytes_theory={"h1->e00": 100},
    )  # fmt: skip
    return Summary(scenario=scenario, platform=PlatformInfo(kernel="6.1.0", datapath="user"), runs=[run])


@pytest.mark.parametrize("columns", ["80", "40"])
@pytest.mark.parametrize("fields", [{}, {"rate_bps": "56G", "scale": 1000}], ids=["as measured", "scaled"])
def test_no_figure_is_cut_short(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str, fields: dict[str, object]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    monkeypatch.setenv("COLUMNS", columns)
    print_summary(summary(**fields), Path("results/x"), plain=True)
    shown = capsys.readouterr().out
    assert "…" not in shown
    for figure in ("mcast_allgather", "64 KiB", "15135.4", "0.07", "0.06", "0.879", "12345", "verified", "1.0100"):
        assert figure in shown


def test_the_table_fits_into_80_columns() -> None:
    from rich.console import Console

    console = Console(width=200)
    assert Measurement.get(console, console.options, summary_table(summary())).maximum <= 80


def test_scaled_bandwidths_stand_beside_the_measured_ones_and_only_with_a_scale() -> None:
    headers = [[str(column.header) for column in summary_table(summary(**fields)).columns] for fields in (
        {}, {"rate_bps": "56G", "scale": 1000},
    )]  # fmt: skip
    assert [header for header in headers[1] if header not in headers[0]] == [
        "algbw\n×1000\n(GB/s)",
        "busbw\n×1000\n(GB/s)",
    ]
    assert set(headers[0]) <= set(headers[1])


def test_a_verdict_on_the_emulation_is_a_line_for_each_reason() -> None:
    assert fidelity_lines(Fidelity(verdict="valid", reasons=[])) == ["fidelity: valid"]
    two = Fidelity(verdict="overloaded", reasons=["one", "two"])
    assert fidelity_lines(two) == ["fidelity: overloaded: one", "fidelity: overloaded: two"]


def test_an_operation_whose_time_is_not_to_be_trusted_is_marked_in_the_table() -> None:
    from rich.console import Console

    slow = summary().runs[0].model_copy(update={"fidelity": Fidelity(verdict="overloaded", reasons=["one"])})
    console = Console(width=200)
    with console.capture() as shown:
        console.print(summary_table(summary().model_copy(update={"runs": [slow]})))
    assert "overloaded" in shown.get()
