"""The data movement of an experiment as rows: by tier, by link, as a matrix; and the theory of its fabric.

Everything follows from ``summary.json`` alone: the fabric from its scenario, the routes and trees from the fabric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller.live import Live
from controller.trees import plan_tree
from endpoints.collectives.registry import collectives
from experiments import theory
from experiments.movement import artifact_model, tiers
from experiments.movement.link_theory import LinkTheory, block_crossings, expected_crossings
from experiments.results import Run, Summary
from experiments.scenario import Scenario

ALL = "all links"

Row = dict[str, Any]


def by_tier(summary: Summary) -> Iterator[Row]:
    """A row for every operation and tier, and one for all of its links; ``theory`` is 0 where there is none."""
    fabric = summary.scenario.fabric
    for run in summary.runs:
        columns = [tiers.totals(fabric, table) for table in _tables(run)]
        for tier in [*columns[0], ALL]:
            values = [sum(column.values()) if tier == ALL else column[tier] for column in columns]
            yield _row(run, {"tier": tier}, values)


def by_link(summary: Summary) -> Iterator[Row]:
    """A row for every operation and directed link."""
    for run in summary.runs:
        tables = _tables(run)
        for link, tier in tiers.tier_of_links(summary.scenario.fabric).items():
            yield _row(run, {"link": link, "tier": tier}, [table.get(link, 0) for table in tables])


def matrices(summary: Summary) -> Iterator[Row]:
    """For every operation the nodes, and the bytes from each to each."""
    for run in summary.runs:
        nodes, rows = tiers.matrix(summary.scenario.fabric, run.link_bytes)
        yield {"algorithm": run.algorithm, "iteration": run.iteration, "nodes": nodes, "bytes": rows}


def _tables(run: Run) -> list[dict[str, int]]:
    return [run.link_bytes, run.link_bytes_theory, run.link_packets, run.link_packets_theory]


def _row(run: Run, where: Row, values: list[int]) -> Row:
    measured, expected, packets, expected_packets = values
    return {
        "algorithm": run.algorithm,
        "iteration": run.iteration,
        **where,
        "bytes": measured,
        "theory": expected,
        "ratio": measured / expected if expected else None,
        "packets": packets,
        "packets_theory": expected_packets,
    }


def crossings(scenario: Scenario) -> Iterator[Row]:
    """For each Allgather the links that blocks of N cross: with ranks depth first, as placed here, and on average.

    ``of_multicast`` compares each with multicast on one tree, for which the order of ranks does not matter.
    """
    fabric, ranks = scenario.fabric, scenario.ranks
    tree = plan_tree(Live(fabric), list(fabric.host))
    assert tree is not None  # nothing is down
    multicast = theory.tree_payload_bytes(len(tree.edges), ranks, 1)
    yield _crossing("multicast", [multicast, multicast, float(multicast)], multicast)
    orders = [list(fabric.host), [host.name for host in scenario.by_rank]]
    contiguous, placed = (LinkTheory(fabric, (), hosts, scenario.mtu).paths for hosts in orders)
    for entry in collectives().values():
        if entry.kind == "allgather" and entry.transfers is not None:
            moves = list(entry.transfers(ranks, 1))
            mean = expected_crossings(moves, contiguous, ranks)
            values = [block_crossings(moves, contiguous), block_crossings(moves, placed), mean]
            yield _crossing(entry.name, values, multicast)


def _crossing(algorithm: str, values: list[float], multicast: int) -> Row:
    names = ("contiguous", "as_placed", "random_mean")
    ratios = {f"{name}_of_multicast": value / multicast for name, value in zip(names, values, strict=True)}
    return {"algorithm": algorithm, **dict(zip(names, values, strict=True)), **(ratios if multicast else {})}


def paper() -> Iterator[Row]:
    """The published traffic model beside exact counting: a row for each number of ranks and algorithm."""
    for ranks in artifact_model.RANKS:
        for count in artifact_model.counts(ranks):
            yield {
                "ranks": ranks,
                "algorithm": count.algorithm,
                "artifact": count.artifact,
                "exact": count.exact,
                "difference": count.artifact - count.exact,
                "causes": dict(count.excess),
            }
