"""Verdicts on made-up operations: effects decide, and every reason says what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.fidelity.verdict import Observed, assess, assess_probe, combine
from experiments.results import Fidelity

FULL_FRAME = 9024
"""Socket memory of a frame with 4 KiB."""

TRUE = Observed(
    rate_bps=50_000_000,
    datapath="user",
    seconds=2.6,
    limit_ratio=0.96,
    burst_s=0.0053,
    oversleep_s=0.045,
    unread_bytes={"e00-eth1": 8 * FULL_FRAME, "c0-eth2": 0},
    switch_busy=0.97,
    host_waited=0.07,
    late_s={"h1": 0.017, "h2": 0.001},
)


def test_a_busy_processor_without_effect_is_no_overload() -> None:
    verdict = assess(TRUE)
    assert (verdict.verdict, verdict.reasons) == ("valid", [])
    assert verdict.figures["switch_busy"] == 0.97
    assert verdict.figures["late_ms"] == 17
    assert verdict.figures["unread_ms"] == pytest.approx(5.25, abs=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unread_bytes": {"c0-eth1": 100 * FULL_FRAME}}, ("fell behind", "c0-eth1", "97% busy", "--bw", "kernel")),
        ({"socket_drops": {"c0-eth1": 5, "c0-eth2": 666}}, ("671 frames", "most at c0-eth2", "--bw")),
        ({"ring_drops": {"h3": 2}}, ("receive queues", "2 frames at h3", "rq_depth")),
        ({"kernel_drops": {"h3-eth0": 2}}, ("2 frames at h3-eth0", "--bw")),
        ({"late_s": {"h1": 0.001, "h9": 0.046}}, ("h9 by 46 ms", "allows for 45")),
    ],
)  # fmt: skip
def test_each_effect_alone_is_an_overload_and_says_what_to_do(
    change: dict[str, object], words: tuple[str, ...]
) -> None:
    verdict = assess(replace(TRUE, **change))  # type: ignore[arg-type]
    assert verdict.verdict == "overloaded"
    [reason] = verdict.reasons
    for word in words:
        assert word in reason


def test_what_a_declared_fault_stopped_is_its_effect_and_only_the_others_are_judged() -> None:
    stopped = replace(
        TRUE,
        late_s={"h1": 0.017, "h3": 0.3},
        ring_drops={"h3": 2},
        disturbed={"h3": "fault 1 (host h3 stop for 300ms)"},
    )
    verdict = assess(stopped)
    assert verdict.verdict == "valid"
    assert verdict.reasons == [
        "fault 1 (host h3 stop for 300ms) accounts for h3, late by 300 ms, and 2 frames found its receive queue full"
    ]
    assert verdict.figures["late_ms"] == 17
    for change in ({"late_s": {"h1": 0.2, "h3": 0.3}}, {"ring_drops": {"h1": 1, "h3": 2}}):
        other = assess(replace(stopped, **change))
        assert other.verdict == "overloaded"
        assert "h1" in other.reasons[0]
        assert "h3" not in other.reasons[0]


def test_the_suggested_rate_is_what_was_carried_less_a_reserve() -> None:
    slow = replace(TRUE, rate_bps=200_000_000, limit_ratio=0.5, unread_bytes={"c0-eth1": 1000 * FULL_FRAME})
    assert "--bw 70 or less" in assess(slow).reasons[0]


def test_the_kernel_datapath_is_not_told_to_use_the_kernel_datapath() -> None:
    verdict = assess(replace(TRUE, datapath="kernel", switch_busy=None, kernel_drops={"e00-eth1": 1}))
    assert "datapath" not in verdict.reasons[0]


def test_short_operations_may_have_two_bursts_unread_but_not_three() -> None:
    short = replace(TRUE, seconds=0.04)
    assert assess(replace(short, unread_bytes={"e00-eth1": 15 * FULL_FRAME})).verdict == "valid"
    assert assess(replace(short, unread_bytes={"e00-eth1": 24 * FULL_FRAME})).verdict == "overloaded"


def test_a_frame_that_nobody_accounts_for_makes_the_run_invalid_whatever_else_is_wrong() -> None:
    verdict = assess(replace(TRUE, unaccounted=("3 chunks are missing",), ring_drops={"h3": 2}))
    assert verdict.verdict == "invalid"
    assert verdict.reasons[0] == "3 chunks are missing"
    assert len(verdict.reasons) == 2


def test_an_operation_that_did_not_finish_has_no_verdict() -> None:
    assert assess(replace(TRUE, seconds=None)).verdict == "unknown"


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.0, "overloaded"), (0.965, "overloaded"), (0.975, "valid"), (1.0, "valid"), (1.02, "valid"), (20.0, "invalid")],
)
def test_a_link_must_carry_its_rate_and_no_more(ratio: float, verdict: str) -> None:
    found = assess_probe({"h1->e00": 50_000_000, "e00->h1": round(ratio * 50e6)}, 50_000_000)
    assert found.verdict == verdict
    assert found.figures == {"probe_ratio": ratio}
    assert all("link e00->h1 carried" in reason for reason in found.reasons)


def test_the_link_that_is_farthest_off_is_named_and_one_that_carries_too_much_is_the_worse() -> None:
    slow = {"h1->e00": 48_000_000, "h2->e00": 25_000_000, "e00->h1": 50_000_000}
    assert "link h2->e00 carried 50% of its 50 Mbit/s and 1 more of 3" in assess_probe(slow, 50_000_000).reasons[0]
    fast = assess_probe(slow | {"e00->h2": 60_000_000}, 50_000_000)
    assert fast.verdict == "invalid"
    assert fast.reasons == ["alone, link e00->h2 carried 120% of its 50 Mbit/s: links are not shaped as asked"]


def test_links_that_were_not_tried_are_not_judged() -> None:
    assert assess_probe({}, 50_000_000) == Fidelity(verdict="valid", reasons=[])


def test_the_worst_operation_decides_and_equal_reasons_are_told_once() -> None:
    runs = [
        Fidelity(verdict="valid", reasons=[], figures={"late_ms": 3}),
        Fidelity(verdict="overloaded", reasons=["hosts were late, h1 by 50 ms: rest"], figures={"late_ms": 50}),
        Fidelity(verdict="overloaded", reasons=["hosts were late, h2 by 60 ms: rest"], figures={"late_ms": 60}),
    ]
    whole = combine(runs)
    assert whole.verdict == "overloaded"
    assert whole.reasons == ["hosts were late, h1 by 50 ms: rest (so in 2 of 3)"]
    assert whole.figures == {"late_ms": 60}
    assert combine([*runs, Fidelity(verdict="invalid", reasons=["x"])]).verdict == "invalid"
    assert combine([]).verdict == "unknown"


def test_a_full_queue_and_a_link_that_was_down_explain_a_valid_result() -> None:
    full = assess(replace(TRUE, queue_fill={"e00-eth1": 0.95, "e00-eth2": 0.1}))
    assert full.verdict == "valid"
    assert "queue at e00-eth1 was 95% full" in full.reasons[0]
    assert "raise --queue" in full.reasons[0]
    assert assess(replace(TRUE, queue_fill={"e00-eth1": 0.89})).reasons == []
    down = assess(replace(TRUE, down_drops={"e00-eth1": 4, "h1-eth0": 0}))
    assert down.verdict == "valid"
    assert "4 frames" in down.reasons[0]
    assert down.figures["down_drops"] == 4


def test_a_full_send_buffer_is_an_overload_since_it_loses_frames_unseen() -> None:
    found = assess(replace(TRUE, send_buffer_fill=0.97))
    assert found.verdict == "overloaded"
    assert "send buffer to 97%" in found.reasons[0]
    assert "smaller --queue" in found.reasons[0]
