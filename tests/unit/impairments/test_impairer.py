"""Injected faults: the right packets, the right number of them, the same ones whatever the timing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from endpoints.core.communicator import Communicator, GroupAddress, Peer
from endpoints.core.packets import Aeth, Opcode, RcPacket, UdBurst
from endpoints.impairments.impairer import Hit, Impairer, Tally
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.wire.codec import Codec, stack
from endpoints.wire.templates import build_templates

MTU = 256
COMM = Communicator(
    tuple(Peer(r, f"h{r + 1}", bytes([2, 0, 0, 0, r, 1]), 0x0A000001 + (r << 8)) for r in range(4)),
    (GroupAddress(0xEF010000, bytes([1, 0, 0x5E, 1, 0, 0])),),
    MTU,
    50_000_000,
)
RANKS = {peer.ip: peer.rank for peer in COMM.peers}
TEMPLATES = build_templates()
CODECS = [Codec(COMM, rank, TEMPLATES) for rank in range(4)]
HOST = 3


def chunks(count: int, sender: int = 1, length: int = 4) -> tuple[np.ndarray, np.ndarray]:
    psn = np.arange(count, dtype=np.uint32)
    burst = UdBurst(0, psn, psn | np.uint32(7 << 24), [np.full(length, p % 251, np.uint8) for p in range(count)])
    return stack(CODECS[sender].encode_burst(burst), MTU)


def impairer(*specs: ImpairmentSpec, seed: int = 1, host: int = HOST, direction: str = "rx") -> Impairer:
    return Impairer(specs, seed, host, direction, RANKS)


def drop(**options) -> ImpairmentSpec:
    return ImpairmentSpec("drop", **options)


def psns(parts) -> list[int]:
    """PSNs of what was handed on, in order."""
    return [int.from_bytes(bytes(row[51:54]), "big") for frames, _ in parts for row in frames]


def run(faults: Impairer, frames, lengths, sizes=None) -> list[int]:
    """Hand the frames over in batches of ``sizes`` (all at once by default); PSNs of what came through at once."""
    got, start = [], 0
    for size in sizes or [len(lengths)]:
        got += psns(faults.apply(frames[start : start + size], lengths[start : start + size], 0))
        start += size
    assert start == len(lengths)
    return got


# --- which packets


def test_exact_psns_are_dropped_and_nothing_else():
    faults = impairer(drop(psns=(17, (40, 60), (55, 70), 3)))
    listed = {3, 17, *range(40, 71)}
    assert run(faults, *chunks(100)) == [p for p in range(100) if p not in listed]
    assert faults.counters == {"drop": len(listed)}
    assert faults.log == [Hit("drop", 1, 0x65, p, p | 7 << 24, 0) for p in sorted(listed)]


def test_listed_psn_is_struck_once_and_its_repetition_comes_through():
    faults = impairer(drop(psns=(5,)), drop(psns=(6,), sightings=2))
    frames, lengths = chunks(10)
    assert run(faults, frames, lengths) == [0, 1, 2, 3, 4, 7, 8, 9]
    assert run(faults, frames, lengths) == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert run(faults, frames, lengths) == list(range(10))


def test_only_the_named_sender_host_direction_and_transport_are_struck():
    frames, lengths = chunks(10, sender=2)
    assert run(impairer(drop(probability=1.0, senders=frozenset({2}))), frames, lengths) == []
    assert run(impairer(drop(probability=1.0, senders=frozenset({1}))), frames, lengths) == list(range(10))
    assert run(impairer(drop(probability=1.0, hosts=frozenset({HOST}))), frames, lengths) == []
    assert run(impairer(drop(probability=1.0, hosts=frozenset({0}))), frames, lengths) == list(range(10))
    assert run(impairer(drop(probability=1.0, direction="tx")), frames, lengths) == list(range(10))
    assert run(impairer(drop(probability=1.0, transport="ud")), frames, lengths) == []
    assert run(impairer(drop(probability=1.0, transport="rc")), frames, lengths) == list(range(10))


def test_probabilities_zero_and_one_are_never_and_always():
    frames, lengths = chunks(5000)
    assert run(impairer(drop(probability=0.0)), frames, lengths) == list(range(5000))
    assert run(impairer(drop(probability=1.0)), frames, lengths) == []


def test_nothing_to_do_costs_nothing():
    assert impairer().idle
    assert impairer(drop(probability=0.5, hosts=frozenset({0}))).idle
    assert impairer(drop(probability=0.5), direction="tx").idle
    assert not impairer(drop(probability=0.5)).idle


def test_acknowledgement_and_chunk_of_one_psn_are_different_packets():
    """And so are the same packet's repetitions, each of which rolls anew."""
    ack = CODECS[1].encode_rc(RcPacket(Opcode.RC_ACKNOWLEDGE, HOST, 7, aeth=Aeth(0, 0)))
    send = CODECS[1].encode_rc(RcPacket(Opcode.RC_SEND_ONLY, HOST, 7))
    frames, lengths = stack([ack, send, ack, send, ack], MTU)
    faults = impairer(drop(probability=1.0))
    run(faults, frames, lengths)
    assert [(hit.opcode, hit.attempt) for hit in faults.log] == [(17, 0), (4, 0), (17, 1), (4, 1), (17, 2)]
    assert {hit.imm for hit in faults.log} == {None}


def test_chunks_of_two_workers_with_the_same_numbers_are_different_packets():
    comm = replace(COMM, groups=COMM.groups * 2)
    psn = np.arange(1000, dtype=np.uint32)
    burst = UdBurst(0, psn, psn, [np.zeros(4, np.uint8)] * len(psn))
    faults = impairer(drop(probability=0.5))
    lost = []
    for worker in range(2):
        frames, lengths = stack(Codec(comm.share(worker, 2), 1, TEMPLATES).encode_burst(burst), MTU)
        lost.append(set(psn.tolist()) - set(run(faults, frames, lengths)))
    assert {hit.attempt for hit in faults.log} == {0}
    assert 150 < len(lost[0] & lost[1]) < 350  # a quarter: independent of one another


def test_a_repeated_packet_rolls_anew():
    frames, lengths = chunks(1)
    faults = impairer(drop(probability=0.5))
    outcomes = [len(run(faults, frames, lengths)) for _ in range(200)]
    assert 60 < sum(outcomes) < 140


def test_read_response_asked_for_again_from_its_middle_counts_as_repeated():
    first = CODECS[1].encode_rc(RcPacket(Opcode.RC_READ_RESPONSE_MIDDLE, HOST, 9, payload=bytes(MTU)))
    again = CODECS[1].encode_rc(RcPacket(Opcode.RC_READ_RESPONSE_FIRST, HOST, 9, aeth=Aeth(0, 0), payload=bytes(MTU)))
    faults = impairer(drop(probability=1.0))
    run(faults, *stack([first, again], MTU))
    assert [hit.attempt for hit in faults.log] == [0, 1]


def test_lost_packet_is_not_struck_again():
    faults = impairer(drop(probability=1.0), ImpairmentSpec("duplicate", probability=1.0))
    assert run(faults, *chunks(3)) == []
    assert faults.counters == {"drop": 3}


def test_stray_bytes_in_a_short_frames_slot_do_not_change_its_fate():
    frame = CODECS[1].encode_rc(RcPacket(Opcode.RC_SEND_ONLY, HOST, 7))
    frames, lengths = stack([frame] * 2, MTU)
    frames[1, len(frame) :] = 0xA5
    faults = impairer(drop(probability=1.0))
    run(faults, frames, lengths)
    assert [hit.attempt for hit in faults.log] == [0, 1]


@pytest.mark.parametrize("stride", [20, 58, 62, 66])
def test_frames_of_any_width_pass(stride):
    frames, lengths = np.zeros((3, stride), np.uint8), np.array([0, 14, stride], np.int32)
    ((got, sizes),) = impairer(drop(probability=0.0)).apply(frames, lengths, 0)
    assert got is frames
    assert sizes is lengths
    assert psns(impairer(drop(probability=1.0)).apply(np.zeros((2, 66), np.uint8), np.array([0, 57]), 0)) == [0, 0]


def test_log_ends_at_its_limit_and_the_count_goes_on():
    faults = Impairer([drop(probability=1.0)], 1, HOST, "rx", RANKS, log_limit=5)
    frames, lengths = chunks(8)
    run(faults, frames, lengths, [3, 5])
    assert [hit.psn for hit in faults.log] == [0, 1, 2, 3, 4]
    assert faults.counters == {"drop": 8}


def test_sender_that_is_no_rank_is_none_in_the_log():
    frames, lengths = chunks(1)
    frames[0, 26] = 11
    faults = impairer(drop(probability=1.0))
    run(faults, frames, lengths)
    assert faults.log[0].sender is None


# --- the same packets whatever the timing


def everything(seed: int) -> Impairer:
    return impairer(
        drop(probability=0.1),
        drop(probability=0.05, senders=frozenset({1})),
        ImpairmentSpec("duplicate", probability=0.1),
        ImpairmentSpec("corrupt", probability=0.1),
        ImpairmentSpec("reorder", probability=0.1, packets=3),
        ImpairmentSpec("delay", probability=0.1),
        seed=seed,
    )


def packets() -> list[bytes]:
    """Chunks of three senders, and packets of reliable connections, each once."""
    frames = [bytes(row[:n]) for s in (0, 1, 2) for row, n in zip(*chunks(300, s), strict=True)]
    for peer in (0, 1, 2):
        frames += [CODECS[peer].encode_rc(RcPacket(Opcode.RC_SEND_ONLY, HOST, psn)) for psn in range(100)]
    return frames


def test_the_same_seed_strikes_the_same_packets_in_any_order_and_grouping():
    frames = packets()
    reference = everything(seed=4)
    run(reference, *stack(frames, MTU))
    assert len(reference.log) > 400
    for trial in range(5):
        order = np.random.default_rng(trial)
        shuffled = [frames[i] for i in order.permutation(len(frames))]
        cuts = np.sort(order.integers(0, len(frames), 80))
        sizes = np.diff([0, *cuts.tolist(), len(frames)]).tolist()
        faults = everything(seed=4)
        run(faults, *stack(shuffled, MTU), sizes)
        assert sorted(faults.log) == sorted(reference.log)
        assert faults.counters == reference.counters


def test_repetitions_are_struck_by_their_number_not_by_their_time():
    frames = packets()
    plain, mixed = everything(seed=2), everything(seed=2)
    for _ in range(3):
        run(plain, *stack(frames, MTU))
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(frames)), 3))
    run(mixed, *stack([frames[i] for i in order], MTU), [700] * 5 + [len(order) - 3500])
    assert sorted(mixed.log) == sorted(plain.log)


def test_seeds_hosts_directions_and_twin_specs_strike_independently():
    frames, lengths = chunks(20_000)
    half = drop(probability=0.5)

    def struck(faults: Impairer) -> np.ndarray:
        got = np.ones(20_000, bool)
        got[run(faults, frames, lengths)] = False
        return got

    reference = struck(impairer(half))
    others = [
        impairer(half, seed=2),
        impairer(half, host=0),
        impairer(drop(probability=0.5, direction="tx"), direction="tx"),
        impairer(drop(probability=0.0), half),
    ]
    for faults in others:
        agreement = (struck(faults) == reference).mean()
        assert abs(agreement - 0.5) < 5 * 0.5 / 20_000**0.5


# --- what happens to them


def test_duplicates_follow_their_originals():
    assert run(impairer(ImpairmentSpec("duplicate", psns=(1, 3))), *chunks(5)) == [0, 1, 1, 2, 3, 3, 4]


def test_delayed_packet_comes_at_its_time_and_not_before():
    faults = impairer(ImpairmentSpec("delay", psns=(1, 2), time_ns=1000))
    frames, lengths = chunks(5)
    original = frames.copy()
    assert faults.next_timeout() is None
    assert psns(faults.apply(frames[:3], lengths[:3], 50)) == [0]
    assert faults.next_timeout() == 1050
    frames[:] = 0xEE  # the ring's slots are used again meanwhile
    assert faults.due(1049) == []
    ((late, sizes),) = faults.due(1050)
    assert (late == original[1:3]).all()
    assert sizes.tolist() == lengths[1:3].tolist()
    assert faults.next_timeout() is None
    assert faults.due(9999) == []


def test_packets_that_are_held_back_are_counted_with_their_copies_until_they_are_let_go():
    faults = impairer(
        ImpairmentSpec("duplicate", psns=(2,)),
        ImpairmentSpec("delay", psns=(1,), time_ns=1000),
        ImpairmentSpec("reorder", psns=(2,), time_ns=2000, packets=4),
    )
    assert faults.held() == {}
    run(faults, *chunks(4))
    assert faults.held() == {Opcode.UD_SEND_ONLY_IMM: 3}
    faults.due(1000)
    assert faults.held() == {Opcode.UD_SEND_ONLY_IMM: 2}
    run(faults, *chunks(9))
    assert psns(faults.due(1000)) == []
    assert faults.held() == {}, "and enough newer ones have overtaken the other"


def test_held_packets_come_in_the_order_of_their_times():
    faults = impairer(ImpairmentSpec("delay", psns=((0, 4),), time_ns=1000))
    frames, lengths = chunks(5)
    for i, now in enumerate([30, 10, 20, 10, 0]):
        assert faults.apply(frames[i : i + 1], lengths[i : i + 1], now) == []
    assert faults.next_timeout() == 1000
    assert psns(faults.due(1010)) == [4, 1, 3]
    assert psns(faults.due(2000)) == [2, 0]


def test_held_frames_of_different_strides_come_apart():
    """As when they were held on the way out, where each frame is an array of its own."""
    faults = impairer(ImpairmentSpec("delay", probability=1.0, time_ns=10))
    for length in (4, 4, 8):
        frames, lengths = chunks(1, length=length)
        faults.apply(frames[:, : lengths[0]], lengths, 0)
    assert [part.shape for part, _ in faults.due(10)] == [(2, 74), (1, 78)]


@pytest.mark.parametrize("sizes", [[10], [3, 7], [5, 1, 1, 3], [1] * 10])
def test_reordered_packet_is_overtaken_by_as_many_as_asked(sizes):
    faults = impairer(ImpairmentSpec("reorder", psns=(2,), packets=3))
    assert run(faults, *chunks(10), sizes) == [0, 1, 3, 4, 5, 2, 6, 7, 8, 9]
    assert faults.next_timeout() is None
    assert faults.due(1 << 60) == []


def test_neighbours_are_reordered_each_on_its_own():
    faults = impairer(ImpairmentSpec("reorder", psns=(1, 2), packets=2), ImpairmentSpec("duplicate", psns=(1,)))
    assert run(faults, *chunks(6), [2, 4]) == [0, 3, 1, 1, 4, 2, 5]


def test_reordered_packet_that_too_few_overtake_comes_after_its_time():
    faults = impairer(ImpairmentSpec("reorder", psns=(8,), packets=3, time_ns=700))
    assert run(faults, *chunks(10)) == [*range(8), 9]
    assert faults.next_timeout() == 700
    assert psns(faults.due(700)) == [8]
    assert run(faults, *chunks(10)) == list(range(10))


def test_corrupted_packet_has_one_bit_wrong_and_a_wrong_icrc():
    frames, lengths = chunks(2000, length=200)
    before = frames.copy()
    faults = impairer(ImpairmentSpec("corrupt", probability=1.0))
    ((after, sizes),) = faults.apply(frames, lengths, 0)
    flipped = np.unpackbits(after ^ before, axis=1)
    assert (flipped.sum(axis=1) == 1).all()
    place = flipped.argmax(axis=1) // 8
    assert set(place.tolist()) == set(range(42, 70 + 200)) - {46}  # from BTH to the ICRC without BTH's resv8a
    assert CODECS[HOST].decode(after, sizes).rejected == {"bad_icrc": 2000}


def test_what_is_handed_on_decodes_as_before():
    faults = impairer(drop(probability=0.3), ImpairmentSpec("duplicate", probability=0.3))
    frames, lengths = chunks(200, length=MTU)
    expected = psns(impairer(*[rule.spec for rule in faults._rules]).apply(frames.copy(), lengths, 0))
    got = []
    for part, sizes in faults.apply(frames, lengths, 0):
        batch = CODECS[HOST].decode(part, sizes)
        assert batch.rejected == {}
        assert all((row == psn % 251).all() for row, psn in zip(batch.chunks.payload, batch.chunks.psn, strict=True))
        got += batch.chunks.psn.tolist()
    assert got == expected


def test_outgoing_frames_are_struck_alike():
    frames, lengths = chunks(50)
    faults = impairer(ImpairmentSpec("drop", direction="tx", psns=(4,)), host=1, direction="tx")
    got = []
    for row, length in zip(frames, lengths, strict=True):  # one by one, as wide as it is long
        got += psns(faults.apply(row[None, :length], np.array([length], np.int32), 0))
    assert got == [p for p in range(50) if p != 4]


# --- faults that come and go


def test_a_live_fault_strikes_from_when_it_is_put_in_until_it_is_taken_out_and_counts_both():
    faults = impairer()
    assert len(run(faults, *chunks(10))) == 10
    faults.set_live({4: drop(probability=1.0)})
    assert run(faults, *chunks(10)) == []
    assert faults.set_live({}) == {4: Tally(10, 10)}
    assert len(run(faults, *chunks(10))) == 10
    assert faults.set_live({}) == {}
    assert faults.idle


def test_a_live_fault_that_stays_goes_on_counting_while_others_come():
    faults = impairer()
    faults.set_live({1: drop(psns=(3,))})
    run(faults, *chunks(10))
    faults.set_live({1: drop(psns=(3,)), 2: drop(probability=1.0, senders=frozenset({2}))})
    run(faults, *chunks(10))
    assert faults.set_live({}) == {1: Tally(20, 1), 2: Tally(0, 0)}


def test_live_faults_leave_those_of_the_start_alone():
    fixed = impairer(drop(probability=0.3))
    alone = impairer(drop(probability=0.3))
    fixed.set_live({1: drop(probability=0.0)})
    assert run(fixed, *chunks(200)) == run(alone, *chunks(200))


def test_two_live_faults_of_one_kind_strike_independently():
    faults = impairer()
    faults.set_live({1: drop(probability=0.5), 2: drop(probability=0.5)})
    passed = len(run(faults, *chunks(4000)))
    assert 850 < passed < 1150, "a quarter"


def test_what_a_fault_holds_back_is_let_go_in_its_time_after_the_fault_is_gone():
    faults = impairer()
    faults.set_live({1: ImpairmentSpec("delay", probability=1.0, time_ns=1000)})
    assert run(faults, *chunks(3)) == []
    faults.set_live({})
    assert not faults.idle
    assert psns(faults.due(1000)) == [0, 1, 2]
    assert faults.idle
