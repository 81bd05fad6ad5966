"""The main job for real: one command builds a fabric, runs a collective on it, and verifies every byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from experiments.results import Run
from tests.e2e.command import NEEDS, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

LEAFSPINE = "leafspine,leaves=2,spines=2,hosts=2"
HEADERS = 70
"""Bytes around each chunk: Ethernet 14, IPv4 20, UDP 8, BTH 12, DETH 8, ImmDt 4, ICRC 4."""


def assert_bytes_as_in_theory(result: Run) -> None:
    """Every directed link carried what its trees say, within one in a hundred, and no other link carried data."""
    assert result.port_mismatches == [], "kernel and OpenFlow count the same at both ends of every link"
    slack = 0.01 * max(result.link_bytes_theory.values())
    for link, measured in result.link_bytes.items():
        expected = result.link_bytes_theory.get(link, 0)
        assert measured == pytest.approx(expected, rel=0.01, abs=0 if expected else slack), link


def test_an_allgather_on_a_fat_tree_is_verified_and_crosses_each_link_of_the_tree_once(tmp_path: Path) -> None:
    size, mtu, ranks, edges = 256 << 10, 4096, 16, 28
    done = run(tmp_path, "--topo", "fattree,k=4", "--bw", "50", "--size", "256KiB", "--mtu", str(mtu))
    result = done.verified()
    assert (result.ranks, result.bytes_per_rank) == (ranks, size)
    assert_bytes_as_in_theory(result)
    wire = size + size // mtu * HEADERS
    assert sum(result.link_bytes.values()) == pytest.approx(edges * ranks * wire, rel=0.01), "E P N and headers"
    for host, sent in result.host_tx_bytes.items():
        assert wire <= sent <= 1.01 * wire, f"{host} sends its own block once, and hardly more"
    assert result.packets.sent == ranks * size // mtu
    assert result.packets.received == (ranks - 1) * result.packets.sent
    assert result.limit_seconds == pytest.approx(15 * size * 8 / 50e6)
    assert result.seconds is not None
    assert result.seconds > result.limit_seconds, "the links are as slow as they were asked to be"


def test_algorithms_take_turns_and_two_trees_share_the_chunks(tmp_path: Path) -> None:
    size, trees = 256 << 10, 2
    done = run(
        tmp_path, "--topo", LEAFSPINE, "--size", "256KiB", "--trees", str(trees), "--iterations", "2",
        "--algorithm", "mcast_allgather,mcast_broadcast",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    runs = done.summary.runs
    order = [(result.algorithm, result.iteration) for result in runs]
    assert order == [(name, i) for i in (1, 2) for name in ("mcast_allgather", "mcast_broadcast")]
    for result in runs:
        assert result.verified
        assert_bytes_as_in_theory(result)
    broadcast = runs[1]
    assert broadcast.packets.sent == size // 4096
    assert broadcast.packets.received == 3 * broadcast.packets.sent
    spines = {spine for spine in ("s0", "s1") if runs[0].link_bytes[f"l0->{spine}"] > size // 2}
    assert spines == {"s0", "s1"}, "each tree has a spine of its own"


def test_one_tree_uses_one_spine(tmp_path: Path) -> None:
    result = run(tmp_path, "--topo", LEAFSPINE, "--size", "64KiB").verified()
    spines = [spine for spine in ("s0", "s1") if result.link_bytes[f"l0->{spine}"] > 64 << 10]
    assert len(spines) == 1


def test_a_file_that_the_ranks_do_not_divide_is_gathered_whole(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(os.urandom(100_003))
    result = run(tmp_path, "--topo", "single,hosts=3", "--mtu", "1024", "--input", str(file)).verified()
    assert result.bytes_per_rank == 33_335
    assert result.packets.sent == 3 * 33


def test_the_scaled_rate_is_stored_and_links_are_shaped_at_it(tmp_path: Path) -> None:
    done = run(tmp_path, "--topo", "single,hosts=2", "--bw", "56G", "--scale", "1000", "--size", "64KiB")
    result = done.verified()
    scenario = done.summary.scenario
    assert (scenario.rate_bps, scenario.scale, scenario.shaped_bps) == (56_000_000_000, 1000, 56_000_000)
    assert result.limit_seconds == pytest.approx((64 << 10) * 8 / 56e6)
    assert "links of 56 Mbit/s" in done.out
    assert "×1000" in done.out


def test_the_summary_on_standard_output_is_the_file_and_latest_points_at_it(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text("topology: single,hosts=2\nsize_bytes: 10000\nmtu: 256\nname: small\n")
    done = run(tmp_path, str(scenario), "--json")
    assert done.code == 0
    assert json.loads(done.out) == json.loads((done.latest / "summary.json").read_text())
    assert done.latest.readlink().name.endswith("Z-small")
    assert done.summary.scenario.mtu == 256
    logs = {path.name for path in (done.latest / "logs").iterdir()}
    assert logs == {"controller.log", "ovs-vswitchd.log", "ovsdb-server.log"}
