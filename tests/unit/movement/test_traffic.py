"""Data movement told from a summary: tiers, links, matrix, and the command that prints them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.errors import UserError
from experiments.movement import tiers, traffic
from experiments.results import PlatformInfo, Run, Summary
from experiments.scenario import Scenario
from topo.registry import parse_topology, topologies


def summary_of(topology: str, **fields: object) -> Summary:
    """One operation that carried 1000 bytes in 10 packets over every link, and was to carry 800 in 8."""
    scenario = Scenario.of({"topology": topology, **fields})
    links = list(tiers.tier_of_links(scenario.fabric))
    run = Run(
        algorithm="ring_allgather", iteration=1, ranks=scenario.ranks, bytes_per_rank=10, verified=True, seconds=1.0,
        limit_seconds=0.5, limit_ratio=0.5,
        link_bytes=dict.fromkeys(links, 1000), link_packets=dict.fromkeys(links, 10),
        link_bytes_theory=dict.fromkeys(links, 800), link_packets_theory=dict.fromkeys(links, 8),
    )  # fmt: skip
    return Summary(scenario=scenario, platform=PlatformInfo(kernel="6.1", datapath="user"), runs=[run])


@pytest.mark.parametrize(
    ("topology", "links"),
    [
        ("fattree,k=4", {"host uplinks": 16, "edge": 32, "aggregation": 32, "core": 16}),
        ("leafspine,leaves=4,spines=2,hosts=3", {"host uplinks": 12, "leaf": 20, "spine": 8}),
        ("single,hosts=5", {"host uplinks": 5, "edge": 5}),
    ],
)
def test_tiers_are_what_their_nodes_send_in_the_order_from_the_hosts_up(topology: str, links: dict[str, int]) -> None:
    fabric = parse_topology(topology)
    found = tiers.totals(fabric, dict.fromkeys(tiers.tier_of_links(fabric), 1))
    assert list(found.items()) == list(links.items())


@pytest.mark.parametrize("topology", topologies())
def test_every_link_is_in_one_tier_and_in_one_place_of_the_matrix(topology: str) -> None:
    fabric = parse_topology(topology)
    per_link = {link: index + 1 for index, link in enumerate(tiers.tier_of_links(fabric))}
    assert len(per_link) == 2 * len(fabric.links)
    assert sum(tiers.totals(fabric, per_link).values()) == sum(per_link.values())
    nodes, rows = tiers.matrix(fabric, per_link)
    assert {
        f"{one}->{other}": rows[i][j] for i, one in enumerate(nodes) for j, other in enumerate(nodes) if rows[i][j]
    } == per_link


def test_a_row_has_what_was_measured_beside_theory_and_the_last_row_has_all() -> None:
    rows = list(traffic.by_tier(summary_of("fattree,k=4")))
    assert [row["tier"] for row in rows] == ["host uplinks", "edge", "aggregation", "core", "all links"]
    assert rows[0] == {
        "algorithm": "ring_allgather", "iteration": 1, "tier": "host uplinks", "bytes": 16_000, "theory": 12_800,
        "ratio": 1.25, "packets": 160, "packets_theory": 128,
    }  # fmt: skip
    assert rows[-1]["bytes"] == sum(row["bytes"] for row in rows[:-1]) == 96_000


def test_what_random_placement_costs_a_ring_is_shown_beside_multicast() -> None:
    rows = {row["algorithm"]: row for row in traffic.crossings(Scenario.of({"placement": "random", "seed": 3}))}
    ring = rows["ring_allgather"]
    assert rows["multicast"]["contiguous"] == 448
    assert (ring["contiguous"], ring["random_mean"]) == (840, 1312)
    assert ring["contiguous_of_multicast"] == 1.875
    assert ring["random_mean_of_multicast"] == pytest.approx(2.929, abs=0.001)
    assert 2.2 < ring["as_placed_of_multicast"] < 3.5


def test_a_fabric_of_one_host_moves_nothing() -> None:
    rows = list(traffic.crossings(Scenario.of({"topology": "single,hosts=1"})))
    assert all(row["contiguous"] == 0 for row in rows if row["algorithm"] != "multicast")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "summary.json").write_text(summary_of("leafspine,leaves=2,spines=1,hosts=2").to_json())
    return tmp_path


@pytest.fixture
def printed() -> Callable[..., str]:
    def invoke(*arguments: object) -> str:
        result = CliRunner().invoke(app, ["traffic", *map(str, arguments)])
        if result.exception is not None:
            raise result.exception
        return result.output

    return invoke


def test_the_command_prints_tiers_and_what_the_order_of_ranks_costs(folder: Path, printed: Callable[..., str]) -> None:
    text = printed(folder)
    assert text == printed(folder / "summary.json")
    for words in (
        "host uplinks",
        "leaf",
        "spine",
        "all links",
        "1.2500",
        "random mean",
        "recursive_doubling_allgather",
    ):
        assert words in text


def test_every_link_can_be_had_as_csv_and_json(folder: Path, printed: Callable[..., str]) -> None:
    table = list(csv.DictReader(io.StringIO(printed(folder, "--links", "--csv"))))
    rows = json.loads(printed(folder, "--links", "--json"))
    assert [row["link"] for row in table] == [row["link"] for row in rows]
    assert len(rows) == 12
    assert rows[0]["ratio"] == float(table[0]["ratio"]) == 1.25


def test_the_matrix_is_a_table_of_senders_and_receivers(folder: Path, printed: Callable[..., str]) -> None:
    head, *lines = csv.reader(io.StringIO(printed(folder, "--matrix")))
    assert head == ["ring_allgather 1", "h1", "h2", "h3", "h4", "l0", "l1", "s0"]
    cells = {(line[0], name): value for line in lines for name, value in zip(head[1:], line[1:], strict=True)}
    assert (cells["h1", "l0"], cells["l0", "h1"], cells["h1", "l1"]) == ("1000", "1000", "0")


def test_the_published_model_needs_no_results(printed: Callable[..., str]) -> None:
    rows = json.loads(printed("--paper", "--json"))
    [ring] = [row for row in rows if (row["ranks"], row["algorithm"]) == (1024, "ring")]
    assert (ring["artifact"], ring["exact"], ring["difference"]) == (2287428, 2291520, -4092)
    assert sum(ring["causes"].values()) == ring["difference"]
    assert "2287428" in printed("--paper")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--json", "--csv"), "choose one"),
        (("--paper", "--links"), "--paper"),
        (("--links", "--matrix"), "choose one"),
        (("no-such-folder",), "no-such-folder"),
    ],
)
def test_contradictions_and_missing_results_are_refused(
    arguments: tuple[str, ...], complaint: str, printed: Callable[..., str]
) -> None:
    with pytest.raises(UserError, match=complaint):
        printed(*arguments)
