"""Scenarios that have a name: the traps of the protocol, and the defects of earlier implementations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from endpoints.core.config import Cutoff
from endpoints.core.events import Failed
from experiments.sim.network import Fault
from tests.sim.scenarios import MS, Case, make_world, run_case, run_once

UD_IMM = 0x65
RC_SEND, RC_READ = 0x05, 0x0C
TOKEN = 2


def opcode(frame: bytes) -> int:
    """BTH opcode of a frame."""
    return frame[42]


def chunk(frame: bytes) -> int:
    """Chunk number of a multicast frame, from its immediate."""
    return int.from_bytes(frame[63:66], "big")


def drop_if(condition, times: int | None = None) -> Fault:
    """Drop frames for which ``condition(link, frame)`` holds, at most ``times`` times."""
    left = [times]

    def fault(link: str, frame: bytes) -> list[tuple[int, bytes]]:
        if condition(link, frame) and (left[0] is None or left[0] > 0):
            if left[0] is not None:
                left[0] -= 1
            return []
        return [(0, frame)]

    return fault


def run_with(case: Case, fault: Fault):
    """One operation with a fault; all ranks must complete."""
    world = make_world(case)
    world.network.fault = fault
    outcome = run_once(world, case)
    assert not outcome.failures, outcome.failures
    return world, outcome


def test_short_tail_is_here_and_an_earlier_hole_is_last() -> None:
    """The artifact reads too few bytes then, since it takes the last gap for the short tail packet."""
    case = Case(ranks=4, size=1000)  # chunks of 256: the fourth has 232 bytes
    _, outcome = run_with(case, drop_if(lambda link, f: link == "s1->h3" and opcode(f) == UD_IMM and chunk(f) == 2))
    assert outcome.counters["recovered"] == 1


def test_loss_at_the_roots_link_makes_all_receivers_miss_and_all_recover() -> None:
    case = Case(ranks=9, size=2000)
    lost = drop_if(lambda link, f: link == "h1->s1" and opcode(f) == UD_IMM and chunk(f) in (0, 3))
    _, outcome = run_with(case, lost)
    assert outcome.counters["recovered"] == 2 * 8


def test_loss_at_one_leaf_is_repaired_by_the_left_neighbour() -> None:
    case = Case(ranks=6, size=1500)
    lost = drop_if(lambda link, f: link == "s1->h4" and opcode(f) == UD_IMM and chunk(f) % 3 == 0)
    world, _ = run_with(case, lost)
    readers = [h.station.endpoint.counters["recovered"] for h in world.hosts]
    assert readers[3] > 0
    assert sum(readers) == readers[3]
    served = [world.network.link_bytes[f"h{rank + 1}->s1"] for rank in range(6)]
    assert max(served) == served[2], "rank 3 fetches from rank 2"


@pytest.mark.parametrize("early", [True, False], ids=["early", "at the cutoff"])
def test_what_was_overtaken_is_fetched_while_the_multicast_goes_on(early: bool) -> None:
    """Chunk 3 is lost at one leaf; most of the operation's 0.3 s are still to come."""
    case = Case(ranks=4, size=200_000, fetch_early=early)
    lost = drop_if(lambda link, f: link == "s1->h3" and opcode(f) == UD_IMM and chunk(f) == 3)
    seen: list[int] = []

    def fault(link: str, frame: bytes) -> Sequence[tuple[int, bytes]]:
        seen.extend([opcode(frame)] if link.startswith("h") else [])
        return lost(link, frame)

    _, outcome = run_with(case, fault)
    multicast_after_the_read = seen[seen.index(RC_READ) :].count(UD_IMM)
    assert (multicast_after_the_read > 100) is early
    assert outcome.counters["recovered"] == 1
    assert outcome.counters["duplicates"] == 0, "nothing that the multicast brought was fetched as well"


def test_what_is_merely_late_is_not_fetched() -> None:
    """A fifth of the multicast comes 30 ms late, which is within the time that reordering may take."""
    case = Case(ranks=4, size=200_000)
    _, outcome = run_with(
        case, lambda link, f: [(30 * MS if link == "s1->h3" and opcode(f) == UD_IMM and chunk(f) % 5 == 0 else 0, f)]
    )
    assert outcome.counters["fetches"] == 0


@pytest.mark.parametrize("times", [1, None], ids=["once", "always"])
@pytest.mark.parametrize("cutoff", list(Cutoff))
def test_a_lost_hand_over_token_does_not_stop_the_chain(times: int | None, cutoff: Cutoff) -> None:
    case = Case(ranks=5, size=600, chains=1, cutoff=cutoff)
    lost = drop_if(lambda link, f: link == "s1->h3" and opcode(f) == RC_SEND and f[54] >> 4 == TOKEN, times)
    if times is None:
        world = make_world(case)
        world.network.fault = lost
        outcome = run_once(world, case)  # the bearer finds its successor deaf to it: completes, or says whom it misses
        assert all(failure.suspect is not None for failure in outcome.failures.values())
    else:
        run_with(case, lost)


@pytest.mark.parametrize("chains", [1, 2, 3, 4, 5, 6, 7])
def test_ranks_need_not_be_divisible_by_chains(chains: int) -> None:
    run_case(Case(ranks=7, size=700, chains=chains))


def test_cutoff_fires_with_data_in_flight() -> None:
    """A second of delay on one link: the receiver goes to the slow path, and the late multicast does no harm."""
    case = Case(ranks=5, size=1200, operations=2)
    world = make_world(case)
    world.network.fault = lambda link, f: [(1000 * MS if link == "s1->h2" and opcode(f) == UD_IMM else 0, f)]
    first, second = run_once(world, case, 0), run_once(world, case, 1)
    assert not first.failures
    assert not second.failures
    assert first.counters["recovered"] > 0


def test_late_packets_of_one_operation_during_the_next_are_refused() -> None:
    case = Case(ranks=4, size=1200)
    world = make_world(case)
    world.network.fault = lambda link, f: [
        (0, f),
        *([(15 * MS, f)] if link == "s1->h2" and opcode(f) == UD_IMM else []),
    ]
    for number in range(8):
        assert not run_once(world, case, number).failures
    assert world.hosts[1].station.endpoint.counters["stale_operation"] > 0


@pytest.mark.parametrize("first_op", [254, 255, 256, 2**28 - 2])
def test_operation_ids_wrap(first_op: int) -> None:
    run_case(Case(ranks=4, size=900, first_op=first_op, operations=4, loss=0.05, seed=3))


@pytest.mark.parametrize("what", [RC_SEND, RC_READ, 0x10, 0x11], ids=["send", "read request", "read response", "ack"])
def test_loss_inside_the_slow_path_itself(what: int) -> None:
    """Every other packet of one kind is lost, besides a tenth of the multicast."""
    case = Case(ranks=5, size=3000)
    counts = {"n": 0}

    def fault(link: str, frame: bytes) -> list[tuple[int, bytes]]:
        if link.startswith("h"):
            return [(0, frame)]
        if opcode(frame) == UD_IMM and chunk(frame) % 10 == 3:
            return []
        counts["n"] += opcode(frame) == what
        return [] if opcode(frame) == what and counts["n"] % 2 else [(0, frame)]

    _, outcome = run_with(case, fault)
    assert outcome.counters["recovered"] > 0


def test_one_deaf_host_is_named_by_every_rank_that_fails() -> None:
    case = Case(ranks=6, size=500)
    world = make_world(case)
    world.network.fault = drop_if(lambda link, _: link == "s1->h4")
    outcome = run_once(world, case)
    assert outcome.failures
    assert {failure.suspect for failure in outcome.failures.values()} == {3}


def test_a_dead_root_is_named() -> None:
    case = Case(ranks=6, size=20_000, deaths=((4, 8),))
    outcome = run_case(case)[0]
    assert outcome.failures
    assert {failure.suspect for failure in outcome.failures.values()} == {4}


def test_who_dies_before_its_handshake_is_named_after_a_peer_timeout() -> None:
    """Everybody has everything; rank 3 waits for the word of rank 4, which it has no reason to send anything to."""
    case = Case(ranks=12, size=4000, deaths=((4, 20),))
    world = make_world(case)
    outcome = run_once(world, case)
    timing = world.hosts[0].station.endpoint.timing
    [failure] = outcome.failures.values()
    assert failure.suspect == 4
    assert failure.now < 1.5 * (timing.peer_timeout_ns + timing.patience_ns)


def test_a_dead_root_is_named_after_two_peer_timeouts_however_many_ranks_could_be_asked() -> None:
    world = make_world(Case(ranks=12, size=4000, deaths=((4, 8),)))
    outcome = run_once(world, Case(ranks=12, size=4000, deaths=((4, 8),)))
    assert len(outcome.failures) == 11
    assert {failure.suspect for failure in outcome.failures.values()} == {4}
    peer_timeout = world.hosts[0].station.endpoint.timing.peer_timeout_ns
    assert max(failure.now for failure in outcome.failures.values()) < 2.5 * peer_timeout


def test_the_second_supplier_helps_when_the_neighbour_is_dead_but_its_data_is_here() -> None:
    """Ranks 1 and 2 lose a chunk of rank 0's block, then rank 1 dies: rank 2 gets it from rank 0, who still waits."""
    case = Case(ranks=5, size=2000)
    world = make_world(case)
    world.network.fault = drop_if(
        lambda link, f: link in ("s1->h2", "s1->h3") and opcode(f) == UD_IMM and chunk(f) == 5
    )
    world.kill_at(1, 25 * MS)
    outcome = run_once(world, case)
    assert world.hosts[2].station.endpoint.counters["recovered"] == 1
    assert all(isinstance(end, Failed) or end is not None for rank, end in enumerate(outcome.ends) if rank != 1)


@pytest.mark.parametrize("forwarding_us", [0, 25], ids=["quick switches", "one busy processor for all switches"])
def test_after_an_outage_of_the_whole_network_it_is_not_flooded(forwarding_us: int) -> None:
    """For 1.2 s nothing arrives anywhere, then every rank fetches most of the blocks: once, and not from everybody."""
    case = Case(ranks=16, size=32 * 4096, mtu=4096, topology="fattree,k=4")
    world = make_world(case)
    world.network.forwarding_ns = 1000 * forwarding_us
    begin, end = 50 * MS, 1250 * MS
    world.network.fault = drop_if(lambda link, f: begin <= world.clock.now < end)
    outcome = run_once(world, case)
    assert not outcome.failures, outcome.failures
    recovered = outcome.counters["recovered"]
    assert recovered > 0.5 * 16 * 15 * 32
    answers = sum(host.station.endpoint.retransmitted for host in world.hosts)
    assert outcome.counters["rc_stale"] < 0.1 * recovered, "data that was here already"
    assert answers < 20 * 16, "what was asked again"


def test_duplicates_never_count_twice() -> None:
    case = Case(ranks=4, size=2000, duplicate=1.0)
    outcome = run_case(case)[0]
    assert outcome.counters["duplicates"] > 0


def test_corrupted_frames_are_refused_by_their_icrc() -> None:
    outcome = run_case(Case(ranks=4, size=4000, corrupt=0.2, seed=5))[0]
    assert outcome.counters["bad_icrc"] > 0
    assert outcome.counters["recovered"] > 0


def test_traffic_on_the_links_is_the_trees_and_every_uplink_is_crossed_once() -> None:
    case = Case(ranks=16, size=4096 * 64, mtu=4096, topology="fattree,k=4")
    world = make_world(case)
    run_once(world, case)
    wire = 64 * (4096 + 70)
    total = sum(world.network.link_bytes.values())
    assert total == pytest.approx(448 * wire, rel=0.01)
    for host in range(1, 17):
        uplink = next(n for key, n in world.network.link_bytes.items() if key.startswith(f"h{host}->"))
        assert uplink == pytest.approx(wire, rel=0.01)


def test_same_seed_same_run() -> None:
    case = Case(ranks=6, size=1500, loss=0.1, reorder=0.1, duplicate=0.1, seed=11)
    one, other = run_case(case)[0], run_case(case)[0]
    assert one.ends == other.ends
    assert one.counters == other.counters
    assert all(np.array_equal(a, b) for a, b in zip(one.buffers, other.buffers, strict=True))
