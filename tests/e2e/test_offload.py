"""Collectives on the hosts' NICs: every algorithm, several workers, faults; counted, verified, and accounted apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from endpoints.collectives.registry import collectives
from experiments.bench import two_sizes
from experiments.results import Run
from tests.e2e.command import NEEDS, run, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]


def offloaded(folder: Path, *arguments: str) -> list[Run]:
    """All operations of a run on NICs: verified, the ports as theory has them, and the NICs' work not the hosts'."""
    done = run(folder, "--offload", "nic", "--warmup", "0", "--bw", "20", *arguments)
    assert (done.code, done.err) == (0, "")
    for result in done.summary.runs:
        assert result.verified
        assert result.port_mismatches == []
        assert sum(result.link_packets.values()) >= sum(result.link_packets_theory.values()) > 0
        assert result.cpu.keys() >= {"nic", "application"}
        assert 0 < result.cpu["application"] < result.cpu["nic"]
    return done.summary.runs


def test_every_algorithm_runs_on_a_nic(tmp_path: Path) -> None:
    runs = offloaded(tmp_path, "--topo", "single,hosts=3", "--size", "50000", "--algorithm", ",".join(collectives()))
    assert [result.algorithm for result in runs] == list(collectives())


def test_two_workers_share_the_trees_and_the_bytes(tmp_path: Path) -> None:
    topology, names = "leafspine,leaves=2,spines=2,hosts=2", "mcast_allgather,recursive_doubling_allgather"
    multicast, _ = offloaded(tmp_path, "--topo", topology, "--workers", "2", "--size", "200KiB", "--algorithm", names)
    spines = [sum(n for link, n in multicast.link_bytes.items() if spine in link) for spine in ("s0", "s1")]
    assert max(spines) < 1.05 * min(spines)


def test_what_does_not_fit_goes_in_rounds_and_losses_are_made_up_for(tmp_path: Path) -> None:
    [result] = offloaded(
        tmp_path, "--topo", "single,hosts=3", "--size", "400KiB", "--rq-depth", "64", "--mtu", "1024",
        "--nic-memory", "400KB", "--impair", "drop:rx::2%",
    )  # fmt: skip
    assert result.packets.recovered > 0
    assert result.injected["drop"] > 0


def test_two_outstanding_of_opposite_sizes_are_right(tmp_path: Path) -> None:
    done = treecast(
        tmp_path, "app", two_sizes.__file__, "--topo", "single,hosts=3", "--bw", "50", "--workers", "2",
        "--output", str(tmp_path / "results"),
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    hosts = [json.loads(line.partition(": ")[2]) for line in done.out.splitlines()]
    for what in ("small_together", "small_amidst"):
        assert [len(host[what]) for host in hosts] == [two_sizes.TURNS] * 3


def test_a_host_that_is_killed_is_named_and_the_others_go_on_without_it(tmp_path: Path) -> None:
    done = run(
        tmp_path, "--offload", "nic", "--topo", "single,hosts=4", "--bw", "20", "--size", "256KiB", "--iterations", "2",
        "--warmup", "0", "--fault", "at 100ms: host h2 kill",
    )  # fmt: skip
    first, second = done.summary.runs
    assert first.missing == ["h2"]
    assert "h2" in (first.error or "")
    assert second.verified
    assert second.hosts == ["h1", "h3", "h4"]
