"""The verdict on an operation: what ranks and counters say becomes times, counts and the name of who is at fault."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from endpoints.core.packets import Batch, Opcode
from experiments import judge

UD, WRITE, ACK = int(Opcode.UD_SEND_ONLY_IMM), int(Opcode.RC_WRITE_MIDDLE), int(Opcode.RC_ACKNOWLEDGE)
NAMES = {rank: f"h{rank + 1}" for rank in range(4)}
MS = 1_000_000


@dataclass(frozen=True)
class Report:
    """One rank's words."""

    rank: int
    phases: list[tuple[str, int]] = field(default_factory=list)
    failure: tuple[str, int | None] | None = None
    counters: dict[str, int] = field(default_factory=lambda: {"rc_received": 1})
    ring_dropped: int = 0
    hits: list[tuple[Any, ...]] = field(default_factory=list)
    held: dict[tuple[str, int], int] = field(default_factory=dict)
    gone: str | None = None
    heard_at: int = 0
    cpu_seconds: float = 0.0
    application_cpu_seconds: float | None = None


def finished(rank: int, *ends_ms: int) -> Report:
    """Phases that begin at those times, the last one being the end."""
    recovered = ["recovery"] if len(ends_ms) == 5 else []
    names = ["barrier", "multicast", *recovered, "handshake", "done"]
    return Report(rank, [(name, at * MS) for name, at in zip(names, ends_ms, strict=True)])


def failed(
    rank: int, reason: str, suspect: int | None, at_ms: int = 10, heard: int = 1, heard_ms: int = 0, told: int = 0
) -> Report:
    phases = [("barrier", 0), ("failed", at_ms * MS)]
    counters = {"rc_received": heard, "told_to_give_up": told}
    return Report(rank, phases, (reason, suspect), counters, heard_at=heard_ms * MS)


def hit(direction: str, kind: str, opcode: int = UD) -> tuple[Any, ...]:
    """An entry of a rank's log of injected faults: what struck which packet."""
    return direction, kind, 0, opcode, 17, 17, 0


# Times.


def test_an_operation_takes_from_the_first_rank_that_begins_to_the_last_that_ends() -> None:
    assert judge.seconds([finished(0, 5, 10, 20, 100), finished(1, 2, 10, 20, 30, 90)]) == pytest.approx(0.098)


@pytest.mark.parametrize("other", [Report(1), failed(1, "time is up", None), Report(1, [("barrier", 0)])])
def test_it_has_no_time_while_a_rank_has_not_finished(other: Report) -> None:
    assert judge.seconds([finished(0, 5, 10, 20, 100), other]) is None


def test_phases_are_told_by_rank_and_those_that_were_not_entered_take_no_time() -> None:
    table = judge.phase_seconds([finished(1, 0, 10, 30, 60, 100), finished(0, 5, 10, 20, 100)])
    assert table == {
        "barrier": pytest.approx([0.005, 0.010]),
        "multicast": pytest.approx([0.010, 0.020]),
        "transfer": [0.0, 0.0],
        "recovery": pytest.approx([0.0, 0.030]),
        "handshake": pytest.approx([0.080, 0.040]),
    }


def test_a_rank_that_failed_has_spent_its_time_until_then() -> None:
    table = judge.phase_seconds([failed(0, "time is up", None, at_ms=40)])
    assert table["barrier"] == pytest.approx([0.04])
    assert table["multicast"] == [0.0]


# Packets.


def test_packets_are_summed_over_the_ranks() -> None:
    reports = [
        Report(0, counters={"chunks_sent": 5, "chunks_received": 4, "duplicates": 1, "bad_icrc": 2}, ring_dropped=3),
        Report(1, counters={"chunks_sent": 5, "chunks_received": 3, "recovered": 2, "bad_icrc": 1}, ring_dropped=1),
    ]
    packets = judge.packets(reports, expected=10)
    assert (packets.sent, packets.received, packets.duplicates, packets.recovered) == (10, 7, 1, 2)
    assert (packets.ring_dropped, packets.lost, packets.rejected) == (4, 3, {"bad_icrc": 3})


def test_every_reason_for_which_the_wire_refuses_a_frame_reaches_the_results() -> None:
    assert Batch.__doc__ is not None
    reasons = set(re.findall(r"``(\w+)``", Batch.__doc__.partition("``rejected``")[2]))
    assert len(reasons) > 7
    packets = judge.packets([Report(0, counters=dict.fromkeys(reasons, 1))], expected=0)
    assert packets.rejected == dict.fromkeys(reasons, 1)


@pytest.mark.parametrize(
    ("hits", "received"),
    [
        ([hit("rx", "drop")], 11),
        ([hit("rx", "corrupt")], 11),
        ([hit("rx", "duplicate")], 13),
        ([hit("tx", "drop")], 9),
        ([hit("tx", "corrupt")], 9),
        ([hit("tx", "duplicate")], 15),
        ([hit("rx", "reorder"), hit("rx", "delay"), hit("rx", "drop", ACK)], 12),
        ([hit("tx", "drop"), hit("rx", "duplicate"), hit("rx", "drop")], 9),
    ],
)
def test_chunks_that_faults_took_or_added_are_not_lost(hits: list[tuple[Any, ...]], received: int) -> None:
    """Four ranks, one chunk each: twelve arrivals. What a sender is struck with, three receivers feel."""
    counters = {"chunks_received": received}
    reports = [Report(0, counters=counters, hits=hits), Report(1), Report(2), Report(3)]
    assert judge.packets(reports, expected=12).lost == 0
    assert judge.packets(reports, expected=13).lost == 1


def test_more_arrivals_than_expected_are_no_negative_loss() -> None:
    assert judge.packets([Report(0, counters={"chunks_received": 5})], expected=4).lost == 0


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({("rx", UD): 2}, 12),
        ({("tx", UD): 1}, 12),
        ({("tx", WRITE): 1, ("rx", WRITE): 1}, 12),
        ({("rx", ACK): 3}, 10),
        ({("rx", UD): -1}, 9),
    ],
    ids=["on receive", "by the sender, for both others", "of WRITEs", "of answers", "since an operation before"],
)
def test_chunks_that_faults_still_hold_back_at_the_end_are_not_lost(
    held: dict[tuple[str, int], int], expected: int
) -> None:
    reports = [Report(0, counters={"chunks_received": 10}, held=held), Report(1, counters={}), Report(2, counters={})]
    assert judge.packets(reports, expected).lost == 0
    assert judge.packets(reports, expected + 1).lost == 1


def test_writes_of_every_opcode_that_are_held_back_count() -> None:
    held = {("rx", int(Opcode.RC_WRITE_FIRST)): 1, ("rx", WRITE): 2}
    assert judge.packets([Report(0, counters={"writes_sent": 5, "writes_received": 2}, held=held)], None).lost == 0


def test_only_dropped_multicast_chunks_count_as_dropped_and_every_hit_as_injected() -> None:
    reports = [
        Report(0, hits=[hit("rx", "drop"), hit("rx", "drop", ACK), hit("rx", "corrupt")]),
        Report(1, hits=[hit("tx", "drop"), hit("rx", "delay", ACK)]),
    ]
    assert judge.packets(reports, expected=0).dropped_injected == 2
    assert judge.injected(reports) == {"corrupt": 1, "delay": 1, "drop": 3}


# Who is at fault.


def test_nobody_is_at_fault_where_nobody_failed() -> None:
    assert judge.diagnosis([finished(0, 0, 1, 2, 3), Report(1)], NAMES) is None


def test_a_host_that_received_nothing_is_named_whatever_it_says_of_others() -> None:
    reports = [
        failed(0, "rank 1 does not answer", 1),
        failed(1, "rank 0 does not answer", 0, heard=0),
        failed(2, "rank 0 gave up", 0),
        finished(3, 0, 1, 2, 3),
    ]
    assert judge.diagnosis(reports, NAMES) == "h2 (rank 1) received not a single packet; 3 of 4 ranks gave up"


def test_a_host_whose_endpoint_has_ended_is_named_whatever_others_say() -> None:
    how = "its endpoint was killed by SIGKILL"
    reports = [
        failed(0, "rank 1 does not answer", 1),
        failed(1, "rank 0 does not answer", 0, heard=0),
        Report(2, failure=(how, 2), counters={}, gone=how),
        finished(3, 0, 1, 2, 3),
    ]
    assert judge.diagnosis(reports, NAMES) == f"h3 (rank 2) is missing: {how}; 2 of the 3 others gave up"


def test_every_rank_that_failed_says_why_and_names_whom_it_accuses() -> None:
    how = "its endpoint was killed by SIGKILL"
    reports = [
        failed(0, "rank 2 does not answer", 2),
        failed(1, "heard nothing from any rank", 1),
        Report(2, failure=(how, 2), gone=how),
        finished(3, 0, 1, 2, 3),
    ]
    assert judge.complaints(reports, NAMES) == {
        "h1": "h3 (rank 2): rank 2 does not answer",
        "h2": "heard nothing from any rank",
        "h3": how,
    }


def test_a_chunk_is_a_packet_too() -> None:
    heard = Report(1, [("failed", 5)], ("rank 0 gave up", 2), {"chunks_received": 1})
    line = judge.diagnosis([failed(0, "rank 2 does not answer", 2), heard, failed(2, "time is up", None)], NAMES)
    assert line is not None
    assert line.startswith("h3 (rank 2) seems to be at fault; ")


def test_the_rank_that_most_accuse_is_named_with_the_first_complaint() -> None:
    reports = [
        failed(0, "time is up in handshake", 2, at_ms=30),
        failed(1, "rank 2 does not answer", 2, at_ms=20),
        failed(2, "rank 3 does not answer", 3, at_ms=40),
        failed(3, "rank 1 gave up", None, at_ms=25),
    ]
    assert judge.diagnosis(reports, NAMES) == ("h3 (rank 2) seems to be at fault; h2 (rank 1): rank 2 does not answer")


def suspect(*reports: Report) -> str:
    line = judge.diagnosis(reports, NAMES)
    assert line is not None
    return line.partition(" ")[0]


def test_who_heard_nobody_for_long_is_cut_off_and_not_whom_it_accuses() -> None:
    cut = failed(1, "no rank can supply what is missing of rank 0's block", 0, at_ms=5_000, heard_ms=400)
    waiting = [Report(rank, [("recovery", 700 * MS)], heard_at=12_000 * MS) for rank in (0, 2, 3)]
    assert suspect(cut, *waiting) == "h2"


def test_who_is_heard_by_nobody_but_hears_others_is_still_accused() -> None:
    mute = Report(1, [("recovery", 700 * MS)], heard_at=12_000 * MS)
    others = [failed(rank, "rank 1 does not answer", 1, at_ms=5_000, heard_ms=4_900) for rank in (0, 2, 3)]
    assert suspect(mute, *others) == "h2"


def test_who_completed_is_not_at_fault_but_who_accuses_it() -> None:
    assert suspect(failed(1, "rank 2 does not answer", 2), finished(0, 0, 1, 2, 3), finished(2, 0, 1, 2, 3)) == "h2"


def test_an_accusation_counts_once_however_many_were_told_of_it() -> None:
    reports = [
        failed(0, "rank 1 does not answer", 1),
        failed(1, "rank 0 gave up", 1, told=1),
        failed(2, "rank 3 does not answer", 3),
        failed(3, "rank 2 does not answer", 2, heard_ms=1),
    ]
    told = [failed(rank, "rank 0 gave up", 1, told=1) for rank in range(4, 9)]
    accused = [failed(9, "rank 3 does not answer", 3)]
    assert suspect(*reports, *told, *accused) == "h4"


def test_of_two_who_accuse_each_other_the_one_that_was_cut_off_first_is_named() -> None:
    one = failed(0, "rank 1 does not answer", 1, at_ms=5_000, heard_ms=1_000)
    other = failed(1, "rank 0 does not answer", 0, at_ms=5_000, heard_ms=500)
    assert suspect(one, other, finished(2, 0, 1, 2, 3)) == "h2"


def test_where_nobody_is_accused_the_first_complaint_stands_alone() -> None:
    reports = [failed(0, "time is up in barrier", None, at_ms=9), failed(1, "rank 0 gave up", None, at_ms=11)]
    assert judge.diagnosis(reports, NAMES) == "h1 (rank 0): time is up in barrier"


def test_where_nobody_received_anything_it_is_nobodys_own_fault() -> None:
    reports = [failed(rank, "heard nothing from any rank", rank, at_ms=9 - rank, heard=0) for rank in range(2)]
    line = judge.diagnosis(reports, NAMES)
    assert line == "h1 (rank 0) seems to be at fault; h2 (rank 1): heard nothing from any rank"
