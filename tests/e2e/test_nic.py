"""Applications and their NICs on a real network: what is received, and who learns what when a process is killed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from endpoints.io.commands import Call, Ready, Returned, Stop
from endpoints.nic.process import fork_offloaded
from endpoints.nic.verbs import NOTHING, Nic
from tests.e2e.two_hosts import two_hosts
from tests.e2e.veth_pair import in_sandbox, needs_root

pytestmark = [needs_root, pytest.mark.root, pytest.mark.e2e]

SIZE = 300_001
BOUND_S = 30.0


def contribution(rank: int, salt: int = 0) -> np.ndarray:
    return np.random.default_rng([rank, salt]).integers(0, 256, SIZE, np.uint8)


def collectives(nic: Nic) -> list[int]:
    """Allgathers and a Broadcast, one after the other and outstanding at once; bytes of each that are wrong."""
    everything = np.concatenate([contribution(rank) for rank in range(nic.size)])
    data, buffers = nic.allocate(SIZE), [nic.allocate(nic.size * SIZE) for _ in range(3)]
    data[:] = contribution(nic.rank)
    given, into = nic.register(data), [nic.register(buffer) for buffer in buffers]
    handles = [nic.allgather_async(given, into[0]), nic.allgather_async(given, into[1], "ring_allgather")]
    handles.append(nic.broadcast_async(given if nic.rank == 0 else NOTHING, into[2][:SIZE]))
    for handle in handles:
        handle.wait(BOUND_S)
    expected = [everything, everything, everything[:SIZE]]
    return [int((buffer[: len(right)] != right).sum()) for buffer, right in zip(buffers, expected, strict=True)]


@pytest.mark.parametrize("workers", [1, 2])
def test_collectives_run_on_the_nics_and_arrive_in_the_applications_memory(tmp_path: Path, workers: int) -> None:
    def body() -> None:
        with two_hosts(tmp_path, workers) as network:
            hosts = fork_offloaded(2, workers)
            for host, setup in zip(hosts, network.setups, strict=True):
                host.send(setup)
            for host in hosts:
                assert host.pipe.recv() == Ready()
            for host in hosts:
                host.send(Call(collectives))
            assert [host.pipe.recv() for host in hosts] == [Returned([0, 0, 0])] * 2
            for host in hosts:
                host.send(Stop())
                for process in host.processes:
                    process.join(BOUND_S)
                    assert process.exitcode == 0

    in_sandbox(body)
