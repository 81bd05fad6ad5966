"""The model of the DPA, by hand beside the program."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.dpa.model import (
    TRANSPORTS,
    Dpa,
    Work,
    doubling,
    emulated,
    link_chunks,
    threads_for,
    throughput_bps,
)

TERABIT = 10**12
UC, UD = TRANSPORTS["uc"], TRANSPORTS["ud"]


def test_a_link_of_1600_gbps_is_48_8_million_chunks_of_4_kib_a_second() -> None:
    assert float(link_chunks(1_600_000_000_000, 4096)) == pytest.approx(48.8e6, rel=1e-3)


def test_a_thread_alone_takes_its_cycles() -> None:
    # 1.8 GHz over 598 and 1084 cycles: 332 ns and 602 ns a chunk, 11.5 and 6.3 GiB/s.
    assert float(1 / Dpa().chunk_rate(UC, 1)) == pytest.approx(332e-9, rel=2e-3)
    assert float(1 / Dpa().chunk_rate(UD, 1)) == pytest.approx(602e-9, rel=2e-3)
    assert throughput_bps(Dpa(), UC, 1, 4096) / 8 / 2**30 == pytest.approx(11.5, rel=1e-2)
    assert throughput_bps(Dpa(), UD, 1, 4096) / 8 / 2**30 == pytest.approx(6.33, rel=1e-2)


def test_threads_of_a_core_add_up_until_it_issues_in_every_cycle() -> None:
    dpa, work = Dpa(cores=2, threads_per_core=4, clock_hz=1000), Work(cycles=100, instructions=40)
    rates = [float(dpa.chunk_rate(work, threads)) for threads in range(9)]
    assert rates == [0, 10, 20, 25, 25, 35, 45, 50, 50]


def test_half_of_the_dpa_keeps_up_with_1600_gbps_and_one_core_with_200() -> None:
    for work in TRANSPORTS.values():
        needed = threads_for(Dpa(), work, 1_600_000_000_000, 4096)
        assert needed is not None
        assert needed <= 128
        assert throughput_bps(Dpa(), work, needed, 4096, 1_600_000_000_000) == 1_600_000_000_000
        assert throughput_bps(Dpa(), work, needed - 1, 4096, 1_600_000_000_000) < 1_600_000_000_000
        assert (threads_for(Dpa(), work, 200_000_000_000, 4096) or 17) <= 16


def test_chunks_that_are_too_small_are_too_many() -> None:
    assert threads_for(Dpa(), UD, 1_600_000_000_000, 64) is None


def test_an_emulated_nic_has_its_cost_per_packet() -> None:
    dpa, work = emulated(4_000, workers=2)
    assert dpa.chunk_rate(work, 1) == 250_000
    assert dpa.chunk_rate(work, 2) == 500_000
    assert throughput_bps(dpa, work, 1, 4096) == 250_000 * 4096 * 8


def test_more_threads_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="257 threads: there are 16 cores of 16"):
        Dpa().chunk_rate(UD, 257)


def test_doubling() -> None:
    assert doubling(1) == [1]
    assert doubling(12) == [1, 2, 4, 8, 12]
    assert doubling(16) == [1, 2, 4, 8, 16]


@given(
    cores=st.integers(1, 20),
    per_core=st.integers(1, 20),
    instructions=st.integers(1, 200),
    waiting=st.integers(0, 2000),
    chunk=st.sampled_from((64, 4096, 65536)),
    link=st.integers(1, 2 * TERABIT),
)
def test_more_threads_never_take_less_and_no_more_than_each_alone(
    cores: int, per_core: int, instructions: int, waiting: int, chunk: int, link: int
) -> None:
    dpa, work = Dpa(cores, per_core), Work(instructions + waiting, instructions)
    rates = [dpa.chunk_rate(work, threads) for threads in range(dpa.threads + 1)]
    assert rates == sorted(rates)
    assert all(rate <= threads * rates[1] for threads, rate in enumerate(rates))
    needed = threads_for(dpa, work, link, chunk)
    assert (needed is None) == (rates[-1] < link_chunks(link, chunk))
    if needed is not None:
        assert throughput_bps(dpa, work, needed, chunk, link) <= link
