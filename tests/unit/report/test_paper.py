"""The paper's comparisons: the ratios are those of the operations, in the same setting, at the most ranks and bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import NothingToShow
from experiments.report.figures.paper import FIGURE
from experiments.report.paper import COMPARISONS, growth, sent, share, times, traffic
from experiments.results import Summary
from tests.unit.report.fabricated import summary

OURS, RIVAL = "mcast_allgather", "openmpi_ring_allgather"


def evidence(*summaries: Summary) -> Evidence:
    return Evidence(
        Path("study"),
        tuple(Operation(Path(str(n)), one, run) for n, one in enumerate(summaries) for run in one.runs),
    )


def doubled(one: Summary) -> Summary:
    """The same with twice the bytes on links and from hosts."""
    runs = [
        run.model_copy(
            update={
                "link_bytes": {link: 2 * carried for link, carried in run.link_bytes.items()},
                "link_bytes_theory": {link: 3 * carried for link, carried in run.link_bytes.items()},
                "host_tx_bytes": {host: 5 * carried for host, carried in run.host_tx_bytes.items()},
            }
        )
        for run in one.runs
    ]
    return one.model_copy(update={"runs": runs})


FOUND = evidence(
    summary(algorithms=OURS, ratios=(0.8, 0.9, 0.95)),
    doubled(summary(algorithms=RIVAL, ratios=(0.3,))),
    summary(algorithms=OURS, size_bytes=4096, ratios=(0.5,)),
    doubled(summary(algorithms=RIVAL, size_bytes=4096, ratios=(0.5,))),
    summary(algorithms=OURS, loss=0.1, topology="single,hosts=8"),
    doubled(summary(algorithms=RIVAL, loss=0.1, topology="single,hosts=8")),
)


def test_times_are_compared_by_their_medians_where_most_bytes_are() -> None:
    found = times(OURS, RIVAL)(FOUND)
    assert found is not None
    assert found.ours == pytest.approx(0.9 / 0.3)
    assert found.theory == pytest.approx(3), "in the proportion of the busiest links"
    assert found.where == "4 ranks, 64 KiB, 4 valid"


def test_traffic_and_bytes_that_hosts_send_are_compared() -> None:
    found = traffic(OURS, RIVAL)(FOUND)
    assert found is not None
    assert (found.theory, found.ours) == (pytest.approx(3), pytest.approx(2))
    found = sent(OURS, RIVAL)(FOUND)
    assert found is not None
    assert (found.theory, found.ours) == (3, pytest.approx(5)), "P - 1"


def test_nothing_is_compared_across_settings() -> None:
    apart = evidence(summary(algorithms=OURS), summary(algorithms=RIVAL, mtu=1024))
    for compare in (times, traffic, sent):
        assert compare(OURS, RIVAL)(apart) is None


def test_growth_is_from_the_fewest_ranks_to_the_most_at_one_rate() -> None:
    found = growth("mcast_broadcast")(
        evidence(
            summary(algorithms="mcast_broadcast", topology="single,hosts=2", ratios=(0.9,)),
            summary(algorithms="mcast_broadcast", topology="single,hosts=4", ratios=(0.2,)),
            summary(algorithms="mcast_broadcast", topology="fattree,k=4", ratios=(0.6,)),
            summary(algorithms="mcast_broadcast", topology="single,hosts=32", rate_bps="10M"),
        )
    )
    assert found is not None
    assert found.ours == pytest.approx(1.5)
    assert found.where == "2/16 ranks, 64 KiB, 2 valid"


def test_the_part_of_a_phase_is_that_of_all_receivers() -> None:
    found = share(OURS, "multicast", largest=True)(FOUND)
    assert found is not None
    assert found.ours == pytest.approx(0.8)
    assert share("mcast_broadcast", "multicast", largest=True)(FOUND) is None


def test_each_line_says_how_its_figure_is_known_and_what_is_from_memory_says_so() -> None:
    rival = summary(algorithms="uftp_broadcast")
    tree = [run.model_copy(update={"algorithm": "binomial_broadcast"}) for run in rival.runs]
    [plate] = FIGURE.make(evidence(summary(algorithms="mcast_broadcast"), rival.model_copy(update={"runs": tree})))
    assert plate.drawing is None
    assert [row[0] for row in plate.table.rows] == [comparison.what for comparison in COMPARISONS]
    standing = {row[1]: row[2] for row in plate.table.rows}
    assert standing["up to 4.75 ×"] == "from memory, unchecked"
    assert standing["1.6 Tbit/s with half its threads"] == "read in its abstract"
    missing = [row for row in plate.table.rows if row[4] is None]
    assert missing
    assert all(str(row[5]).startswith(("no data: run ", "not ")) for row in missing)


def test_without_rivals_there_is_no_table() -> None:
    with pytest.raises(NothingToShow, match="sweep paper"):
        FIGURE.make(evidence(summary(algorithms=OURS), summary(algorithms="mcast_broadcast")))
