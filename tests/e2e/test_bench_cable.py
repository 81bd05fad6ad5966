"""The measurement of workers on a cable: every packet comes to the worker it is for, and nothing is left behind."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from endpoints.io.loop import NAP_NS
from experiments.bench.cable import INTERFACE, cable
from experiments.bench.wired import CHUNKS, FILL, bench, make_streams
from tests.e2e.veth_pair import needs_root

pytestmark = [needs_root, pytest.mark.root]

RATE = 8000


def test_two_workers_take_all_of_their_own_packets_paced_and_from_full_rings() -> None:
    home = Path("/proc/self/ns/net").readlink()
    core = min(os.sched_getaffinity(0))
    streams = make_streams(2, RATE)
    with cable() as ends:
        assert Path("/proc/self/ns/net").readlink() == home
        assert len({home, Path(ends.near).readlink(), Path(ends.far).readlink()}) == 3
        with bench(ends, streams, [core, core], NAP_NS) as ready:
            assert [worker.packets for worker in ready.paced(RATE)] == [CHUNKS, CHUNKS]
        with bench(ends, streams, [core, core], nap_ns=0) as ready:
            assert [worker.packets for worker in ready.drained()] == [FILL] * (2 * CHUNKS // FILL)
    assert not os.path.lexists(ends.near)
    assert INTERFACE not in dict(socket.if_nameindex()).values()


def test_a_worker_that_fails_fails_the_measurement(capfd: pytest.CaptureFixture[str]) -> None:
    core = min(os.sched_getaffinity(0))
    [stream] = make_streams(1, RATE)
    stream.data[17] ^= 1
    with (
        cable() as ends,
        bench(ends, [stream], [core], nap_ns=0) as ready,
        pytest.raises(RuntimeError, match="ended without an answer"),
    ):
        ready.drained()
    assert "received wrong bytes" in capfd.readouterr().err
