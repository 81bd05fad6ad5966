"""Which frames the BPF programs choose, in an interpreter."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from scipy.stats import chisquare

from tests.unit.topo.classic_bpf import run
from tests.unit.topo.roce_frames import WRITE_MIDDLE, roce_frame
from topo.impairments.bpf import Label, Op, assemble
from topo.impairments.programs import ALL, chance, exact, spread

FRAMES = 16_000
SHARE = 1 / 16
ALMOST_NEVER = 1e-4
"""A test of true chance fails so rarely; the seeds are fixed, so that these either fail always or never."""


def victims(salt: int, *, source: int = 1, source_qpn: int = 0x10, frames: int = FRAMES) -> list[int]:
    program = chance(SHARE, salt)
    sent = (roce_frame(psn, source=source, source_qpn=source_qpn, imm=psn << 4) for psn in range(frames))
    return [psn for psn, frame in enumerate(sent) if run(program, frame)]


def gaps_look_independent(hits: list[int], share: float = SHARE) -> float:
    """The p-value of a chi-square test of the gaps against the geometric distribution, in classes of equal chance."""
    classes = 8
    gaps = [later - earlier for earlier, later in pairwise(hits)]
    found = [0] * classes
    expected = [0.0] * classes

    def place(gap: int) -> int:
        return min(classes - 1, int((1 - (1 - share) ** gap) * classes))

    for gap in gaps:
        found[place(gap)] += 1
    for gap in range(1, 2000):
        expected[place(gap)] += len(gaps) * share * (1 - share) ** (gap - 1)
    scale = sum(found) / sum(expected)
    return float(chisquare(found, [value * scale for value in expected]).pvalue)


@pytest.mark.parametrize("salt", [0, 1, 0x5EED, 0xFFFFFFFF])
def test_chance_strikes_as_often_as_told_and_frames_that_are_independent(salt):
    hits = victims(salt)

    sigma = math.sqrt(FRAMES * SHARE * (1 - SHARE))
    assert abs(len(hits) - FRAMES * SHARE) < 3 * sigma
    assert gaps_look_independent(hits) > ALMOST_NEVER


def test_clumps_and_regular_losses_fail_the_test_of_gaps():
    clumps = [psn for psn in range(FRAMES) if psn % 64 < 4]
    assert gaps_look_independent(clumps) < ALMOST_NEVER
    assert gaps_look_independent(list(range(0, FRAMES, 16))) < ALMOST_NEVER


def test_one_salt_chooses_the_same_chunks_again_and_another_salt_sender_or_queue_pair_others():
    assert victims(7, frames=2000) == victims(7, frames=2000)
    both = set(victims(7)) & set(victims(8))
    assert len(both) < 2 * FRAMES * SHARE**2
    for other in (victims(7, source=2), victims(7, source_qpn=0x200010)):
        assert len(set(victims(7)) & set(other)) < 2 * FRAMES * SHARE**2


def test_a_packet_that_is_repeated_under_its_psn_is_not_lost_for_ever():
    dice = random.Random(1)
    program = chance(0.5, 7)
    frame = roce_frame(17, opcode=WRITE_MIDDLE)
    fates = [run(program, frame, lambda: dice.getrandbits(32)) for _ in range(100)]
    assert 30 < sum(map(bool, fates)) < 70


def test_frames_that_are_no_roce_are_chosen_by_the_kernels_dice():
    program = chance(0.25, 7)
    arp = b"\xff" * 12 + b"\x08\x06" + bytes(28)
    assert run(program, arp, lambda: 0) != 0
    assert run(program, arp, lambda: 1 << 31) == 0


def test_certainty_needs_no_dice():
    assert chance(1.0, 7) == ALL
    assert run(ALL, b"") != 0


def test_exact_psns_and_no_others_are_hit():
    program = exact(((17, 17), (40, 60)), None, ((0x65, 0x65),))
    hit = {psn for psn in range(200) if run(program, roce_frame(psn))}
    assert hit == {17, *range(40, 61)}
    assert not any(run(program, roce_frame(psn, opcode=WRITE_MIDDLE)) for psn in (17, 40, 60))


def test_every_nth_is_hit():
    program = exact((), 16, ((0x65, 0x65),))
    assert [psn for psn in range(64) if run(program, roce_frame(psn))] == [15, 31, 47, 63]


def test_opcodes_and_many_ranges_fit_into_a_program():
    program = exact(tuple((100 * i, 100 * i + 1) for i in range(1000)), 2, ((0x06, 0x0B), (0x65, 0x65)))
    assert run(program, roce_frame(99_901))
    assert not run(program, roce_frame(99_900))  # not the last of two
    assert not run(program, roce_frame(99_903))
    assert run(program, roce_frame(99_901, opcode=WRITE_MIDDLE))
    assert not run(program, roce_frame(99_901, opcode=0x11))
    assert not run(program, b"\xff" * 60)


def test_held_frames_spread_over_all_classes():
    program = spread(16, 3)
    found = [run(program, roce_frame(psn)) for psn in range(3200)]
    assert set(found) == set(range(0x10001, 0x10011))
    assert chisquare([found.count(c) for c in sorted(set(found))]).pvalue > ALMOST_NEVER


def test_a_jump_that_is_too_far_is_an_error():
    with pytest.raises(ValueError, match="jump over 256"):
        assemble([Op("jeq", 1, true="far"), *[Op("len")] * 256, Label("far"), Op("ret", 0)])


def test_tc_is_told_the_number_of_instructions_first():
    assert ALL.bytecode == "1,6 0 0 4294967295"
