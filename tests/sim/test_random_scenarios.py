"""Thousands of random scenarios in virtual time: always every byte right, or a clear error in bounded virtual time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from endpoints.collectives.registry import collectives
from endpoints.core.config import Cutoff
from tests.sim.scenarios import Case, fitting, run_case

EXAMPLES = 300
"""For each of the parts below, 2,400 altogether."""

settings_here = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
"""Each part has a seed of its own: the same scenarios at every run, and other ones in every part."""

RANKS = (*48 * [*range(1, 10)], *range(10, 34))
"""A twentieth are large ones, each of which takes as long as dozens of the others."""

sizes = st.one_of(
    st.sampled_from([0, 1, 255, 256, 257, 511, 512, 513]),
    st.integers(0, 2_000),
    st.integers(0, 8).map(lambda n: 256 * n),
)


@st.composite
def cases(draw: st.DrawFn, algorithm: str, *, loss: float, deaths: int) -> Case:
    """Scenarios of one algorithm with at most that loss and that many deaths."""
    ranks = draw(st.sampled_from(RANKS))
    size = draw(sizes)
    dead = draw(
        st.lists(st.tuples(st.integers(0, ranks - 1), st.integers(0, 40)), min_size=deaths and 1, max_size=deaths)
    )
    return Case(
        ranks=ranks,
        size=fitting(size % 600 if ranks > 9 else size, algorithm),
        algorithm=algorithm,
        seed=draw(st.integers(0, 2**32)),
        trees=draw(st.integers(1, 3)),
        chains=draw(st.one_of(st.none(), st.integers(1, 5))),
        send_batch=draw(st.sampled_from([1, 2, 4, 16])),
        cutoff=draw(st.sampled_from(list(Cutoff))),
        fetch_early=draw(st.sampled_from([True, True, False])),
        scheduling_ms=draw(st.sampled_from([45, 3])),  # with little, an operation of a few chunks has looks at losses
        loss=draw(st.floats(0, loss)),
        reorder=draw(st.sampled_from([0, 0.05, 0.3])),
        duplicate=draw(st.sampled_from([0, 0.05, 0.2])),
        corrupt=draw(st.sampled_from([0, 0.02])),
        deaths=tuple(dead),
        first_op=draw(st.sampled_from([1, 254, 255, 2**28 - 1])),
        operations=draw(st.sampled_from([1, 1, 2])),
    )


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("algorithm", ["mcast_allgather", "mcast_broadcast"])
def test_every_byte_arrives_whatever_the_network_does(algorithm: str, part: int) -> None:
    """Loss up to 5 % (part 0) and 40 % (part 1), with reorder, duplication, corruption."""

    @settings_here
    @seed(f"every byte {algorithm} {part}")
    @given(cases(algorithm, loss=(0.05, 0.4)[part], deaths=0))
    def check(case: Case) -> None:
        run_case(case)

    check()


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("algorithm", ["mcast_allgather", "mcast_broadcast"])
def test_death_of_ranks_ends_in_right_bytes_or_a_clear_error(algorithm: str, part: int) -> None:
    """Up to two ranks die, without loss (part 0) and with (part 1)."""

    @settings_here
    @seed(f"deaths {algorithm} {part}")
    @given(cases(algorithm, loss=(0.0, 0.1)[part], deaths=2))
    def check(case: Case) -> None:
        run_case(case)

    check()


POINT_TO_POINT = sorted(name for name, entry in collectives().items() if entry.transfers is not None)

fewer = settings(settings_here, max_examples=60)
"""For each part of each algorithm, which differ in their schedules alone: 1,080 altogether."""


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("algorithm", POINT_TO_POINT)
def test_every_byte_arrives_point_to_point_whatever_the_network_does(algorithm: str, part: int) -> None:
    """Loss up to 5 % (part 0) and 40 % (part 1), with reorder, duplication, corruption."""

    @fewer
    @seed(f"point to point {algorithm} {part}")
    @given(cases(algorithm, loss=(0.05, 0.4)[part], deaths=0))
    def check(case: Case) -> None:
        run_case(case)

    check()


@pytest.mark.parametrize("algorithm", POINT_TO_POINT)
def test_death_of_ranks_point_to_point_ends_in_right_bytes_or_a_clear_error(algorithm: str) -> None:
    @fewer
    @seed(f"point to point deaths {algorithm}")
    @given(cases(algorithm, loss=0.1, deaths=2))
    def check(case: Case) -> None:
        run_case(case)

    check()
