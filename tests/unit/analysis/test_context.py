"""Where each chunk of a captured run belongs: which operation it is of, and whose blocks that one's buffer holds."""

from __future__ import annotations

import pytest

from experiments.analysis.context import Context
from experiments.results import Run
from experiments.scenario import Scenario

SCENARIO = Scenario.of(
    {
        "topology": "single,hosts=4",
        "size_bytes": "8KiB",
        "algorithms": "mcast_allgather,ring_allgather,mcast_broadcast",
        "iterations": 2,
        "warmup": 1,
    }
)


def ran(algorithm: str, *hosts: str, size: int = 8192) -> Run:
    return Run(
        algorithm=algorithm,
        iteration=1,
        ranks=len(hosts) or 4,
        hosts=list(hosts),
        bytes_per_rank=size,
        verified=True,
        seconds=1.0,
        limit_seconds=0.5,
        limit_ratio=0.5,
    )


def roots(context: Context, op: int) -> tuple[int, ...] | None:
    blocks = context.blocks(op)
    return None if blocks is None else blocks.roots


@pytest.mark.parametrize(
    ("op", "whose"), [(1, (0, 1, 2, 3)), (2, None), (3, (0,)), (4, (0, 1, 2, 3)), (5, None), (6, (0,))]
)
def test_operations_take_the_algorithms_in_turn(op: int, whose: tuple[int, ...] | None) -> None:
    assert roots(Context(SCENARIO), op) == whose


def test_after_the_warm_up_they_are_those_that_the_summary_tells_of_among_those_who_took_part() -> None:
    left = ("h2", "h3", "h4")
    runs = [ran("mcast_allgather"), ran("ring_allgather", *left), ran("mcast_allgather", *left)]
    context = Context(SCENARIO, tuple(runs))
    assert [roots(context, op) for op in range(1, 7)] == [
        *((0, 1, 2, 3), None, (0,)),
        *((0, 1, 2, 3), None, (1, 2, 3)),
    ]


def test_what_was_run_by_hand_is_told_by_the_runs_alone() -> None:
    console = Scenario.of({"topology": "single,hosts=4", "warmup": 0})
    context = Context(console, (ran("mcast_broadcast", size=65536), ran("mcast_allgather")))
    assert [roots(context, op) for op in (1, 2)] == [(0,), (0, 1, 2, 3)]
    sizes = [blocks.layout.block_bytes for op in (1, 2) if (blocks := context.blocks(op))]
    assert sizes == [65536, 8192]
