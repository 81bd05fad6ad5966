"""The grid: which points a file means, their identities, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import UserError
from experiments.scenario import Scenario
from experiments.sweep.grid import Grid, grid_of

SHARED: dict[str, Any] = {"topology": "single,hosts=3", "rate_bps": "50M"}


def grid(vary: Any, **fields: Any) -> Grid:
    return grid_of({**SHARED, "vary": vary, **fields}, "study")


def combinations(found: Grid) -> list[tuple[Any, ...]]:
    return [(*point.varied.values(), point.repetition) for point in found.points]


def test_every_combination_is_there_as_often_as_asked() -> None:
    found = grid({"size_bytes": ["4KiB", "1MiB"], "loss": [0, "1%", 0.05]}, repetitions=4)
    assert found.name == "study"
    assert sorted(combinations(found)) == sorted(
        (size, loss, repetition) for size in (4096, 1 << 20) for loss in (0.0, 0.01, 0.05) for repetition in range(1, 5)
    )


def test_a_point_is_the_shared_scenario_with_its_own_values_and_seed() -> None:
    for point in grid({"chains": [1, 2]}, repetitions=2, seed=7, mtu=1024).points:
        assert point.scenario == Scenario.of(
            {**SHARED, "mtu": 1024, **point.varied, "seed": 6 + point.repetition, "name": point.scenario.name}
        )


def test_what_follows_from_a_varied_field_is_resolved_for_each_point() -> None:
    found = grid({"topology": ["single,hosts=3", "fattree,k=4"]})
    assert sorted((point.scenario.ranks, point.scenario.chains) for point in found.points) == [(3, 3), (16, 16)]


def test_a_list_of_grids_is_their_union_and_what_is_in_two_of_them_is_one_point() -> None:
    found = grid([{"loss": [0, "1%"], "mtu": 1024}, {"mtu": [1024, 2048]}])
    assert sorted((point.scenario.loss, point.scenario.mtu) for point in found.points) == [
        (0.0, 1024), (0.0, 2048), (0.01, 1024),
    ]  # fmt: skip


def test_an_alternative_may_itself_be_a_list() -> None:
    pair = ["mcast_allgather", "mcast_broadcast"]
    found = grid({"algorithms": [pair, "mcast_broadcast"]})
    assert {point.scenario.algorithms for point in found.points} == {tuple(pair), ("mcast_broadcast",)}


def test_keys_are_unique_and_do_not_depend_on_how_the_same_is_written() -> None:
    one = grid({"loss": [0, "1%"], "size_bytes": ["64KiB", "4KiB"]}, repetitions=2)
    other = grid({"size_bytes": [4096, "65536"], "loss": [0.01, 0.0]}, repetitions=2, name="another", trees=1)
    assert len({point.key for point in one.points}) == 8
    assert {point.key for point in one.points} == {point.key for point in other.points}


def test_a_grown_grid_keeps_the_keys_of_its_points() -> None:
    small, grown = grid({"loss": [0]}), grid({"loss": [0, "1%"]}, repetitions=3)
    assert {point.key for point in small.points} < {point.key for point in grown.points}


@pytest.mark.parametrize("change", [{"seed": 2}, {"mtu": 1024}, {"rate_bps": "51M"}, {"warmup": 0}])
def test_any_other_parameter_makes_another_point(change: dict[str, Any]) -> None:
    assert grid({"loss": [0]}).points[0].key != grid({"loss": [0]}, **change).points[0].key


def test_repetitions_come_block_by_block_each_in_an_order_of_its_own_that_the_seed_decides() -> None:
    vary = {"loss": [0, "1%", "2%", "3%"], "size_bytes": [0, 1, 2, 3]}
    first, again, otherwise = grid(vary, repetitions=3), grid(vary, repetitions=3), grid(vary, repetitions=3, seed=2)
    assert [point.repetition for point in first.points] == [1] * 16 + [2] * 16 + [3] * 16
    assert combinations(first) == combinations(again)
    assert combinations(first) != combinations(otherwise)
    blocks = [[point.configuration for point in first.points[at : at + 16]] for at in (0, 16, 32)]
    assert sorted(blocks[0]) == sorted(blocks[1]) == sorted(blocks[2])
    assert blocks[0] != blocks[1] != blocks[2]


def test_names_tell_points_apart_and_are_fit_for_folders() -> None:
    found = grid_of(
        {"topology": "leafspine,leaves=4,spines=2,hosts=4", "vary": {"loss": [0, 1e-5]}, "repetitions": 2}, "study"
    )
    names = {point.scenario.name for point in found.points}
    assert len(names) == 4
    for point in found.points:
        assert Scenario.of({"name": point.scenario.name}).name == point.scenario.name


WRONG = [
    ({}, "has neither vary nor repetitions"),
    ({"repetitions": 0}, "repetitions 0"),
    ({"repetitions": True}, "repetitions True"),
    ({"vary": 5}, "vary 5: must be fields"),
    ({"vary": [5]}, "vary 5: must be fields"),
    ({"vary": {"speed": [1]}}, "vary: 'speed' cannot vary; what can is topology"),
    ({"vary": {"name": ["a"]}}, "vary: 'name' cannot vary"),
    ({"vary": {"loss": []}}, "vary: loss has no values"),
    ({"vary": {"topology": ["fattree,k=3"]}}, "k=3 is odd"),
    ({"vary": {"topology": ["fattree,k=3"]}}, "(at topology: fattree,k=3)"),
    ({"vary": {"chains": [3, 4]}}, "chains 4: single,hosts=3 has 3 ranks"),
    ({"vary": {"loss": [0]}, "speed": 5}, "scenario has no 'speed'"),
    ({"vary": {"loss": [0]}, "name": "a/b"}, "name 'a/b'"),
    ({"vary": {"seed": list(range(200)), "slack_chunks": list(range(1, 100))}}, "more than 10000 points"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_grid_is_refused_in_one_line(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refused:
        grid_of({**SHARED, **fields}, "study")
    assert words in str(refused.value)
