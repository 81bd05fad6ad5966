"""What is made of a worker's batches: what waking costs is apart from what a packet does."""

from __future__ import annotations

from experiments.bench.batches import Batch, Received

TAKEN = Received(
    (
        Batch(100, woke=True, at_ns=1_000_000, cpu_ns=700_000),
        Batch(128, woke=False, at_ns=1_400_000, cpu_ns=1_000_000),
        Batch(172, woke=False, at_ns=1_900_000, cpu_ns=1_600_000),
        Batch(90, woke=True, at_ns=3_000_000, cpu_ns=2_300_000),
        Batch(10, woke=False, at_ns=3_200_000, cpu_ns=2_390_000),
    ),
    cpu_ns=2_500_000,
)


def test_all_cpu_time_is_the_packets_and_they_are_counted_by_wake() -> None:
    assert TAKEN.packet_ns == 2_500_000 / 500
    assert TAKEN.per_wake == 250


def test_a_worker_that_is_awake_pays_for_packets_alone_and_small_batches_tell_nothing() -> None:
    assert TAKEN.awake_ns == (300_000 + 600_000) / (128 + 172)


def test_the_rate_is_that_of_the_clock_behind_the_first_batch() -> None:
    assert TAKEN.rate == 400 * 1e9 / 2_200_000
