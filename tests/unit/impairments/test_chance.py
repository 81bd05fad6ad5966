"""Chance is what it says: the rate, and the independence of neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest

from endpoints.impairments.fates import Fates
from endpoints.impairments.identity import Identities, _join, mix, salt
from endpoints.impairments.impairer import Impairer
from endpoints.impairments.sightings import Sightings
from endpoints.impairments.spec import ImpairmentSpec

COUNT = 100_000


def identities(sender: int = 0x0A000001, stride: int = 1) -> Identities:
    """Consecutive chunks of one sender, as an operation sends them."""
    psn = np.arange(COUNT, dtype=np.uint32) * np.uint32(stride) & np.uint32(0xFFFFFF)
    zeros = np.zeros(COUNT, np.uint8)
    imm = psn | np.uint32(7 << 24)
    senders = np.full(COUNT, sender, np.uint32)
    key = _join(senders, zeros, np.full(COUNT, 0xFFFFFF, np.uint32), psn, imm)
    return Identities(np.ones(COUNT, bool), senders, zeros + 0x65, zeros, psn, imm, key)


def struck(probability: float, seed: int = 3, host: int = 0, packets: Identities | None = None) -> np.ndarray:
    faults = Impairer([ImpairmentSpec("drop", probability=probability)], seed, host, "rx", {})
    fates = faults.judge(packets or identities(), np.full(COUNT, 100))
    return np.zeros(COUNT, bool) if fates is None else fates.copies == 0


@pytest.mark.parametrize("probability", [0.001, 0.01, 0.05, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_rate_lies_in_the_binomial_interval(probability, seed):
    sigma = math.sqrt(COUNT * probability * (1 - probability))
    assert abs(struck(probability, seed).sum() - COUNT * probability) < 3.29 * sigma  # 99.9 %


@pytest.mark.parametrize("probability", [0.01, 0.05, 0.3])
def test_gaps_between_losses_are_geometric(probability):
    """Chi-square of the gap lengths in ten classes of equal probability, as far as whole numbers allow."""
    gaps = np.diff(np.flatnonzero(struck(probability))) - 1
    edges = sorted({math.ceil(math.log(1 - q / 10) / math.log(1 - probability)) for q in range(10)} | {0})
    tail = (1 - probability) ** np.array(edges)  # chance of a gap of at least so many
    expected = len(gaps) * (tail - np.append(tail[1:], 0))
    counts = np.histogram(gaps, [*edges, np.inf])[0]
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(edges) - 1
    # Wilson and Hilferty's approximation of the 99.9 % point.
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("lag", [1, 2, 15, 16, 256])
def test_neighbours_are_struck_independently(lag):
    hit = struck(0.3).astype(float) - 0.3
    correlation = (hit[:-lag] * hit[lag:]).mean() / (0.3 * 0.7)
    assert abs(correlation) < 3.29 / math.sqrt(COUNT - lag)


def test_senders_and_hosts_are_struck_independently():
    reference = struck(0.3)
    for other in (struck(0.3, packets=identities(0x0A000101)), struck(0.3, host=1), struck(0.3, seed=4)):
        covariance = ((reference - 0.3) * (other - 0.3)).mean() / (0.3 * 0.7)
        assert abs(covariance) < 3.29 / math.sqrt(COUNT)


def test_every_part_of_a_salt_counts():
    salts = [
        salt(seed, host, way, kind, ordinal)
        for seed in (0, 1, 2**64 - 1)
        for host in (0, 1)
        for way in ("rx", "tx")
        for kind in ("drop", "delay")
        for ordinal in (0, 1)
    ]
    assert len(set(salts)) == len(salts)


def test_chances_are_the_same_on_every_machine():
    """Fixed for ever: a recorded seed must strike the same packets in a later version."""
    expected = [5063, 26507, 56804, 58640, 74692, 80527, 81801, 87098]
    assert np.flatnonzero(struck(0.0001, seed=7)).tolist() == expected


def test_mix_is_splitmix64():
    """The first numbers of its reference implementation for the seed 1234567."""
    state = np.array([1234567, (1234567 + 0x9E3779B97F4A7C15) % 2**64], np.uint64)
    assert mix(state).tolist() == [6457827717110365317, 3203168211198807973]


def test_sightings_are_counted_and_the_oldest_forgotten():
    sightings = Sightings(generation=4)
    keys = np.arange(10, dtype=np.uint64)
    assert sightings.count(keys[[0, 1, 0, 0]]).tolist() == [0, 0, 1, 2]
    assert sightings.count(keys[[2, 3, 0]]).tolist() == [0, 0, 3]  # now four are known: a new generation begins
    assert sightings.count(keys[[0, 4, 5, 6, 7]]).tolist() == [4, 0, 0, 0, 0]
    assert sightings.count(keys[[1, 0, 7]]).tolist() == [0, 5, 1]


def test_fates_do_not_share_columns():
    fates = Fates.unharmed(np.array([1, 2]))
    fates.hold_ns[0] = 5
    assert fates.hold_packets.tolist() == [0, 0]
    assert fates.copies.tolist() == [1, 1]
    assert fates.flip.tolist() == [-1, -1]
