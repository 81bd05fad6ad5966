"""What is made of a worker's batches: what waking costs is apart from what a packet does."""

from __future__ import annotations

from experiments.bench.batches import Batch, Received, awake_ns

TAKEN = Received(
    (
        Batch(100, woke=True, at_ns=1_000_000, cpu_ns=700_000),
        Batch(100, woke=False, at_ns=1_400_000, cpu_ns=1_000_000),
        Batch(10, woke=False, at_ns=1_500_000, cpu_ns=1_090_000),
        Batch(90, woke=True, at_ns=3_000_000, cpu_ns=1_800_000),
        Batch(100, woke=False, at_ns=3_200_000, cpu_ns=2_200_000),
    ),
    cpu_ns=2_400_000,
)


def test_all_cpu_time_is_the_packets_and_they_are_counted_by_wake() -> None:
    assert TAKEN.packet_ns == 2_400_000 / 400
    assert TAKEN.per_wake == 200


def test_a_worker_that_is_awake_pays_for_packets_alone() -> None:
    assert awake_ns([TAKEN, TAKEN]) == [3000, 4000] * 2


def test_the_rate_is_that_of_the_clock_behind_the_first_batch() -> None:
    assert TAKEN.rate == 300 * 1e9 / 2_200_000
