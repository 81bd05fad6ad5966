"""A host's endpoint ends in mid-operation: everybody says who is missing, and the others go on without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]


def test_who_is_killed_is_named_by_all_and_the_next_operations_are_of_the_others(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        *("--topo", "single,hosts=4", "--size", "2MiB", "--warmup", "0", "--iterations", "2"),
        *("--algorithm", "mcast_allgather,recursive_doubling_allgather,mcast_broadcast"),
        *("--fault", "at 0.3s: host h1 kill"),
    )
    assert done.code == 1
    [line] = done.err.splitlines()
    how = "its endpoint was killed by SIGKILL"
    assert line == f"treecast: mcast_allgather, iteration 1: h1 (rank 0) is missing: {how}; 3 of the 3 others gave up"

    broken, *others = done.summary.runs
    assert (broken.verified, broken.ranks, broken.missing, broken.seconds) == (False, 4, ["h1"], None)
    assert broken.failures == {"h1": how, **dict.fromkeys(("h2", "h3", "h4"), f"h1 (rank 0): {how}")}

    assert [(one.algorithm, one.iteration) for one in others] == [
        ("recursive_doubling_allgather", 1),
        ("mcast_allgather", 2),
        ("recursive_doubling_allgather", 2),
    ]
    for one in others:
        assert (one.verified, one.wrong_bytes, one.ranks, one.hosts) == (True, 0, 3, ["h2", "h3", "h4"])
        assert one.limit_seconds == pytest.approx(2 * 2 * 2**20 * 8 / 50e6)
        moved, theory = one.link_bytes, one.link_bytes_theory
        assert sum(theory.values()) < sum(moved.values()) < 1.02 * sum(theory.values())
        assert moved["s1->h1"] < 10_000, "nobody sends to who is missing"
    [refused] = done.summary.skipped
    assert (refused.algorithm, refused.reason) == (
        "mcast_broadcast",
        f"its root h1 is missing: {how}; an Allgather needs none",
    )
