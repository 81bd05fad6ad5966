"""Operations sorted into panels, lines and points; and which of a figure's panels have something to show."""

from __future__ import annotations

from pathlib import Path

from experiments.report.evidence import Evidence, Operation
from experiments.report.groups import Panel, alike, panels, typical, with_a_choice
from experiments.results import Summary
from tests.unit.report.fabricated import summary


def evidence(*summaries: Summary) -> Evidence:
    return Evidence(
        Path("study"),
        tuple(Operation(Path(str(n)), one, run) for n, one in enumerate(summaries) for run in one.runs),
    )


def over_size(found: Evidence) -> list[Panel]:
    return panels(found, lambda operation: operation.run.bytes_per_rank, ("size_bytes",))


def test_repetitions_meet_in_one_cell_whatever_their_seed_and_name() -> None:
    [panel] = over_size(evidence(summary(seed=1, name="a", ratios=(0.8, 0.9)), summary(seed=2, name="b")))
    [cell] = panel.series["mcast_allgather"]
    assert cell.estimate(lambda operation: operation.limit_ratio).count == 3
    assert panel.title == "Allgather"


def test_what_differs_elsewhere_makes_another_panel_with_it_in_the_title() -> None:
    found = over_size(evidence(summary(), summary(size_bytes=4096), summary(loss=0.01), summary(mtu=1024)))
    assert [panel.title for panel in found] == [
        "Allgather, mtu 4096, loss 0%",
        "Allgather, mtu 1024, loss 0%",
        "Allgather, mtu 4096, loss 1%",
    ]
    assert [panel.title for panel in with_a_choice(found)] == ["Allgather, mtu 4096, loss 0%"]


def test_broadcast_and_allgather_are_never_in_one_panel() -> None:
    found = over_size(evidence(summary(algorithms="mcast_allgather,mcast_broadcast")))
    assert [(panel.kind, list(panel.series)) for panel in found] == [
        ("allgather", ["mcast_allgather"]),
        ("broadcast", ["mcast_broadcast"]),
    ]


def test_all_roots_at_once_is_the_same_setting_on_every_topology() -> None:
    found = evidence(summary(), summary(topology="single,hosts=3"), summary(chains=1))
    assert found.varying == ("topology", "chains")
    assert [operation.setting["chains"] for operation in found.operations] == ["all", "all", 1]


def test_a_cell_has_the_worst_verdict_of_its_operations() -> None:
    [panel] = over_size(evidence(summary(), summary(verdict="overloaded"), summary(verdict="unknown")))
    [cell] = panel.series["mcast_allgather"]
    assert cell.verdict == "overloaded"
    assert cell.verdicts == "1 overloaded, 1 unknown, 1 valid"


def test_an_operation_that_failed_counts_nowhere() -> None:
    found = evidence(summary(ratios=(None, 0.5)))
    assert [operation.limit_ratio for operation in found.counting] == [0.5]


def test_the_typical_operation_is_the_one_with_the_median_time() -> None:
    found = evidence(summary(ratios=(0.5, 0.9, 0.7, 0.6)))
    [group] = alike(found.counting, found.varying).values()
    assert typical(group).limit_ratio == 0.7
