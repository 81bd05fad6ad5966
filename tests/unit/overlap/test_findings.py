"""What an overlap experiment found, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import UserError
from experiments.overlap.findings import FILE, Communication, Findings, OnHosts, Round, targets
from experiments.overlap.table import overlap_table, remarks

COLLECTIVE = Communication(seconds=1.5, kernel_cpu=3.0, host_cpu=0.01, nic_cpu=1.0, all_cpu=1.8)
ROUND = Round(
    alone={"h1": 2.0, "h2": 1.0},
    beside={"h1": 2.02, "h2": 1.04},
    communication=COLLECTIVE,
)
FOUND = Findings(
    topology="single,hosts=4",
    ranks=4,
    bytes_per_rank=1 << 20,
    link_rate_bps=50_000_000,
    workers=1,
    accounting="cgroup v2",
    cpus=4,
    idle=COLLECTIVE.model_copy(update={"kernel_cpu": 0.0, "host_cpu": 0.005}),
    pinned={"h1": 3, "h2": 2},
    products=1000,
    rounds=[ROUND],
)


def _round(beside: dict[str, float], host_cpu: float = 0.01, nic_cpu: float = 1.0) -> Round:
    communication = COLLECTIVE.model_copy(update={"host_cpu": host_cpu, "nic_cpu": nic_cpu})
    return ROUND.model_copy(update={"beside": beside, "communication": communication})


def test_a_round_is_slowed_down_as_its_slowest_host() -> None:
    assert ROUND.slowdown == pytest.approx(1.04)
    assert ROUND.covered == pytest.approx(1.5 / 2.02)


def test_both_targets_are_met_where_there_are_cpus_for_all() -> None:
    assert [target.met for target in targets(FOUND)] == [True, True]
    assert [target.value for target in targets(FOUND)] == pytest.approx([1.04, 0.01])


def test_where_cpus_are_too_few_the_time_is_told_and_not_judged() -> None:
    time, share = targets(FOUND.model_copy(update={"cpus": 3}))
    assert (time.met, share.met) == (None, True)
    assert time.remark == "kernels need 2, all else 1.20, of 3 CPUs"


def test_a_kernel_that_is_slowed_down_misses_the_first_target() -> None:
    slow = _round({"h1": 2.02, "h2": 1.06})
    assert targets(FOUND.model_copy(update={"rounds": [slow]}))[0].met is False


@pytest.mark.parametrize("computing", [True, False])
def test_a_host_that_waits_busily_misses_the_second(computing: bool) -> None:
    busy = COLLECTIVE.model_copy(update={"host_cpu": 0.02})
    changed = {"rounds": [_round(ROUND.beside, host_cpu=0.02)]} if computing else {"idle": busy}
    assert targets(FOUND.model_copy(update=changed))[1].met is False


def test_the_time_is_the_median_of_rounds_and_the_share_that_of_all_together() -> None:
    slow = _round({"h1": 4.0, "h2": 2.0}, host_cpu=0.12, nic_cpu=9.0)
    time, share = targets(FOUND.model_copy(update={"rounds": [ROUND, slow, ROUND]}))
    assert time.value == pytest.approx(1.04)
    assert share.value == pytest.approx(0.14 / 11)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    found = FOUND.model_copy(update={"on_hosts": OnHosts(seconds=1.4, host_cpu=0.9)})
    (tmp_path / FILE).write_text(found.to_json())
    assert Findings.read(tmp_path / FILE) == found
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(UserError, match="topology"):
        Findings.read(tmp_path / FILE)


def test_the_table_has_a_row_for_each_way() -> None:
    assert overlap_table(FOUND).row_count == 3
    assert overlap_table(FOUND.model_copy(update={"on_hosts": OnHosts(seconds=1.4, host_cpu=0.9)})).row_count == 4


def test_each_target_is_told_with_what_became_of_it() -> None:
    lines = list(remarks(FOUND.model_copy(update={"rounds": [_round(ROUND.beside, host_cpu=0.05)], "cpus": 3})))
    assert lines[1:] == [
        "CPU times of all hosts together, from cgroup v2",
        "the collective was on during 74% of the kernel's time",
        (
            "kernel beside the collective, of alone: 1.0400, target 1.05: not judged"
            " (kernels need 2, all else 1.20, of 3 CPUs)"
        ),
        "hosts' CPU time for communication, of their NICs': 0.0500, target 0.02: MISSED",
    ]
