"""Faults of the main job for real: what is lost is recovered, what is hit can be told, and what is dead is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import NEEDS, Finished, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

UD_SEND_ONLY_IMM = 0x65
REASONS = {"bad_icrc", "bad_length", "truncated", "not_roce", "unknown_opcode", "unknown_peer", "unknown_qp"}
"""Why a frame is refused for what it is, as opposed to when it comes."""
RANKS, CHUNKS = 4, 32
"""Of the small runs: hosts of one switch, and chunks that each multicasts."""
SMALL = ("--topo", f"single,hosts={RANKS}", "--size", f"{CHUNKS}KiB", "--mtu", "1024")


def multicast_hits(done: Finished, kind: str) -> list[dict[str, Any]]:
    hits = done.hits("mcast_allgather-1")
    return [hit for hit in hits if hit["kind"] == kind and hit["opcode"] == UD_SEND_ONLY_IMM]


def test_loss_and_reordering_are_made_good_and_the_summary_given_back_hits_the_same_packets(tmp_path: Path) -> None:
    first = run(tmp_path / "first", *SMALL, "--loss", "5%", "--reorder", "5%", "--seed", "7")
    result = first.verified()
    packets = result.packets
    assert packets.recovered > 0
    assert packets.dropped_injected == len(multicast_hits(first, "drop")) > 0
    assert packets.received <= packets.sent * (RANKS - 1) - packets.dropped_injected
    assert result.injected["reorder"] >= len(multicast_hits(first, "reorder")) > 0

    again = run(tmp_path / "again", str(first.latest / "summary.json"))
    again.verified()
    assert again.summary.scenario == first.summary.scenario
    for kind in ("drop", "reorder"):
        assert multicast_hits(again, kind) == multicast_hits(first, kind)

    other = run(tmp_path / "other", str(first.latest / "summary.json"), "--seed", "8")
    other.verified()
    assert multicast_hits(other, "drop") != multicast_hits(first, "drop")


def test_what_is_added_round_the_ring_is_right_to_the_last_bit_whatever_is_lost_twice_or_damaged(
    tmp_path: Path,
) -> None:
    done = run(
        tmp_path, *SMALL, "--algorithm", "ring_reduce_scatter", "--seed", "7",
        "--loss", "2%", "--duplicate", "5%", "--reorder", "5%", "--corrupt", "2%",
    )  # fmt: skip
    result = done.verified()
    for kind in ("drop", "duplicate", "reorder", "corrupt"):
        assert result.injected[kind] > 0
    assert result.packets.duplicates > 0


def test_packets_that_are_named_are_lost_where_they_are_named_and_no_others(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--impair", "drop:rx:h3:psn=1,4-6,100-127")
    result = done.verified()
    hits = multicast_hits(done, "drop")
    assert [(hit["rank"], hit["direction"], hit["psn"]) for hit in hits] == [
        (2, "rx", psn) for psn in (1, 4, 5, 6, *range(100, 128))
    ]
    assert {hit["sender"] for hit in hits} == {0, 3}
    assert result.packets.dropped_injected == result.packets.recovered == len(hits)
    assert result.packets.lost == 0


def test_corrupted_packets_are_counted_and_refused_and_made_good(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--corrupt", "5%", "--seed", "3")
    result = done.verified()
    struck = len(multicast_hits(done, "corrupt"))
    assert struck > 0
    assert result.packets.recovered > 0
    rejected = result.packets.rejected
    assert rejected["bad_icrc"] > 0
    wire = sum(count for reason, count in rejected.items() if reason in REASONS)
    assert wire == result.injected["corrupt"], "each inverted bit was noticed, and no sound frame refused"


def test_a_host_that_hears_nothing_fails_the_run_and_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--impair", "drop:rx:h3:100%")
    assert done.code == 1
    [line] = done.err.splitlines()
    assert line.startswith("treecast: mcast_allgather, iteration 1: h3 (rank 2) ")
    [result] = done.summary.runs
    assert not result.verified
    assert result.seconds is None
    assert result.error is not None
    assert result.error in line
    assert "FAILED" in done.out


def test_a_host_that_nobody_hears_fails_the_run_and_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--impair", "drop:tx:h3:100%")
    assert done.code == 1
    [line] = done.err.splitlines()
    assert "h3 (rank 2)" in line


def test_what_is_wrong_with_the_input_is_told_in_a_line_before_anything_starts(tmp_path: Path) -> None:
    done = run(tmp_path, "--topo", "fattree,k=3")
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert "k=3" in line
    assert not done.output.exists()
