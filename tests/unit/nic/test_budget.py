"""The memory plan: by hand beside the program, and against what the engine really allocates."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoints.collectives.registry import collective
from endpoints.core.endpoint import Endpoint
from endpoints.nic.budget import (
    BITS_PER_CHUNK,
    Collective,
    DoesNotFit,
    Nic,
    connections,
    largest_buffer,
    plan,
    staging_depth,
    state_bytes,
)
from experiments.communicators import communicator
from topo.registry import parse_topology

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("psn_bits", "buffer", "bitmap"),
    [(16, 256 * MIB, 8 * KIB), (19, 2 * GIB, 64 * KIB), (20, 4 * GIB, 128 * KIB), (24, 64 * GIB, 2 * MIB)],
)
def test_psn_bits_decide_the_largest_buffer_and_its_bitmap(psn_bits: int, buffer: int, bitmap: int) -> None:
    assert largest_buffer(psn_bits, 4096) == buffer
    assert state_bytes(buffer // 4096, bits_per_chunk=1) == bitmap


def test_staging_is_the_bandwidth_delay_product_and_a_burst() -> None:
    # 200 Gbit/s for 10 us are 250,000 bytes: 60.01 frames of 4166.
    assert staging_depth(rate_bps=200_000_000_000, away_ns=10_000, burst=0, mtu=4096) == 61
    assert staging_depth(rate_bps=200_000_000_000, away_ns=10_000, burst=128, mtu=4096) == 189
    assert staging_depth(rate_bps=50_000_000, away_ns=0, burst=8, mtu=4096) == 8


def test_connections_of_the_busiest_rank() -> None:
    assert connections(1) == 0
    assert connections(2) == 1
    assert connections(4) == 3  # the root of the barrier knows all
    assert connections(188) == 19  # 16 children, a parent, two neighbours in the ring


def test_what_fits_is_one_round() -> None:
    its = plan(Collective(ranks=16, roots=16, block_bytes=MIB), Nic())
    assert (its.rounds, its.round_bytes) == (1, MIB)
    assert its.parts[0].bytes == 4096 * sum(BITS_PER_CHUNK.values()) // 8
    assert its.bytes == sum(part.bytes for part in its.parts) <= its.memory


def test_what_does_not_fit_is_cut_and_what_cannot_be_cut_is_refused_with_numbers() -> None:
    wanted = Collective(ranks=4, roots=4, block_bytes=64 * MIB)
    fixed = plan(wanted, Nic(memory=GIB, bits_per_chunk=1)).bytes - 4 * 16384 // 8
    its = plan(wanted, Nic(memory=fixed + 4096, bits_per_chunk=1))  # half of the bitmap
    assert (its.rounds, its.round_bytes) == (2, 32 * MIB)
    assert plan(wanted, Nic(memory=fixed + 8, bits_per_chunk=1)).rounds == 1024  # one word: 16 chunks of each block
    with pytest.raises(DoesNotFit, match=rf"{fixed + 7} bytes of memory, and {fixed + 8} are needed"):
        plan(wanted, Nic(memory=fixed + 7, bits_per_chunk=1))


def test_psns_that_are_too_few_cut_a_collective_as_well() -> None:
    wanted = Collective(ranks=2, roots=2, block_bytes=MIB, psn_bits=8)
    assert plan(wanted, Nic()).rounds == 2
    with pytest.raises(DoesNotFit, match="1 bits number 2 chunks"):
        plan(Collective(ranks=4, roots=4, block_bytes=MIB, psn_bits=1), Nic())


@given(
    ranks=st.integers(1, 64),
    allgather=st.booleans(),
    block=st.integers(0, 1 << 28),
    mtu=st.sampled_from((256, 1024, 4096)),
    staging=st.integers(1, 2048),
    workers=st.integers(1, 4),
    communicators=st.integers(1, 8),
    memory=st.integers(0, 16 * MIB),
    bits=st.integers(1, 41),
    psn_bits=st.integers(8, 24),
)
def test_a_plan_fits_and_its_rounds_cover_the_block(
    ranks: int,
    allgather: bool,
    block: int,
    mtu: int,
    staging: int,
    workers: int,
    communicators: int,
    memory: int,
    bits: int,
    psn_bits: int,
) -> None:
    wanted = Collective(ranks, ranks if allgather else 1, block, mtu, psn_bits)
    nic = Nic(memory, staging, workers, communicators, bits)
    try:
        its = plan(wanted, nic)
    except DoesNotFit:
        assert memory < plan(wanted, Nic(1 << 40, staging, workers, communicators, bits)).bytes
        return
    assert its.bytes <= memory
    assert its.rounds * its.round_bytes >= block > (its.rounds - 1) * its.round_bytes or block == 0
    assert -(-its.round_bytes // mtu) * wanted.roots <= 1 << psn_bits


def test_the_engine_allocates_what_the_plan_says() -> None:
    """Of 16 ranks the state of 65,536 chunks; the buffers themselves are the application's memory."""
    comm = communicator(parse_topology("fattree,k=4"), mtu=256, rate_bps=50_000_000)
    block = np.zeros(MIB, np.uint8)
    buffer = np.zeros(16 * MIB, np.uint8)
    endpoint = Endpoint(comm, 0)
    make = partial(collective("mcast_allgather").make, data=block, buffer=buffer)
    endpoint.prepare(make)  # what is made once is made now
    endpoint = Endpoint(comm, 0)
    tracemalloc.start()
    try:
        endpoint.start(make, 0)
        found, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    planned = plan(Collective(ranks=16, roots=16, block_bytes=MIB, mtu=256), Nic()).parts[0].bytes
    assert found == pytest.approx(planned, rel=0.1)
