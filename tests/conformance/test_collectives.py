"""What every collective must do, whoever wrote it: this walks the registry, in virtual time."""

from __future__ import annotations

import pytest

from endpoints.collectives.registry import UnknownCollective, collective, collectives
from tests.sim.scenarios import Case, fitting, run_case

MTU = 256
SIZES = (0, 1, MTU - 1, MTU, MTU + 1, 5 * MTU + 7)

any_collective = pytest.mark.parametrize("algorithm", collectives())


@any_collective
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("size", SIZES)
def test_every_byte_is_right_on_every_rank(algorithm: str, ranks: int, size: int) -> None:
    size = fitting(size, algorithm)
    (outcome,) = run_case(Case(ranks=ranks, size=size, mtu=MTU, algorithm=algorithm))
    expected = size * (ranks if collective(algorithm).kind == "allgather" else 1)
    assert [len(buffer) for buffer in outcome.buffers] == [expected] * ranks


@any_collective
def test_lost_reordered_duplicated_and_damaged_frames_change_no_byte(algorithm: str) -> None:
    run_case(
        Case(
            ranks=5, size=3000, mtu=MTU, algorithm=algorithm, seed=1, loss=0.1, reorder=0.1, duplicate=0.1, corrupt=0.05
        )
    )


@any_collective
def test_operations_follow_one_another_on_the_same_endpoints(algorithm: str) -> None:
    outcomes = run_case(Case(ranks=4, size=700, mtu=MTU, algorithm=algorithm, operations=3))
    assert [outcome.completed for outcome in outcomes] == [[0, 1, 2, 3]] * 3


@any_collective
def test_several_trees_share_the_work(algorithm: str) -> None:
    run_case(Case(ranks=5, size=fitting(9 * MTU + 1, algorithm), mtu=MTU, algorithm=algorithm, trees=3))


@any_collective
@pytest.mark.parametrize("size", [*SIZES, 40 * MTU])
def test_blocks_may_lie_apart(algorithm: str, size: int) -> None:
    run_case(
        Case(
            ranks=6,
            size=fitting(size, algorithm),
            mtu=MTU,
            algorithm=algorithm,
            apart=3 * MTU + 5,
            loss=0.02,
            seed=size,
        )
    )


@any_collective
def test_it_is_called_what_its_registry_calls_it(algorithm: str) -> None:
    entry = collective(algorithm)
    assert entry.name == algorithm
    assert entry.summary
    assert entry.contributes(0)
    assert entry.contributes(1) == (entry.kind != "broadcast")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownCollective, match=", ".join(collectives())):
        collective("mcast_nothing")
