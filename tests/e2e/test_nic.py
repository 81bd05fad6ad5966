"""Applications and their NICs on a real network: what is received, and who learns what when a process is killed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from endpoints.collectives.elements import Element
from endpoints.io.commands import Call, Ready, Returned, Stop
from endpoints.nic import budget
from endpoints.nic.device import OUTSTANDING
from endpoints.nic.process import fork_offloaded
from endpoints.nic.verbs import NOTHING, Handle, Nic
from tests.e2e.two_hosts import MTU, STAGING, two_hosts
from tests.e2e.veth_pair import in_sandbox, needs_root

pytestmark = [needs_root, pytest.mark.root, pytest.mark.e2e]

SIZE = 300_001
FLOATS = 50_003
BOUND_S = 30.0


def contribution(rank: int, salt: int = 0) -> np.ndarray:
    return np.random.default_rng([rank, salt]).integers(0, 256, SIZE, np.uint8)


def collectives(nic: Nic) -> tuple[list[int], list[int]]:
    """Allgathers, a Broadcast and a Reduce-Scatter, outstanding at once; bytes that are wrong, and rounds, of each."""
    everything = np.concatenate([contribution(rank) for rank in range(nic.size)])
    data, buffers = nic.allocate(SIZE), [nic.allocate(nic.size * SIZE) for _ in range(3)]
    data[:] = contribution(nic.rank)
    given, into = nic.register(data), [nic.register(buffer) for buffer in buffers]
    handles = [nic.allgather_async(given, into[0]), nic.allgather_async(given, into[1], "ring_allgather")]
    handles.append(nic.broadcast_async(given if nic.rank == 0 else NOTHING, into[2][:SIZE]))
    values = [np.random.default_rng(rank).random((nic.size, FLOATS), np.float32) for rank in range(nic.size)]
    summands, sums = nic.allocate(values[0].nbytes), nic.allocate(FLOATS * 4)
    summands[:] = values[nic.rank].ravel().view(np.uint8)
    handles.append(nic.reduce_scatter_async(nic.register(summands), nic.register(sums), Element.FLOAT32))
    for handle in handles:
        handle.wait(BOUND_S)
    buffers.append(sums)
    total = sum(value[nic.rank] for value in values)
    expected = [everything, everything, everything[:SIZE], np.asarray(total).view(np.uint8)]
    wrong = [int((buffer[: len(right)] != right).sum()) for buffer, right in zip(buffers, expected, strict=True)]
    return wrong, [barriers(nic, handle) for handle in handles]


def barriers(nic: Nic, handle: Handle) -> int:
    """How many rounds there were."""
    return sum(phase == "barrier" for phase, _ in nic.result(handle).phases)


def memory_for(chunks: int, workers: int) -> int:
    """Bytes of a NIC that has just room for the state of so many chunks in each of its works."""
    wanted = budget.Collective(ranks=2, roots=1, block_bytes=chunks * MTU, mtu=MTU)
    nic = budget.Nic(1 << 30, staging=STAGING // workers, outstanding=OUTSTANDING)
    return workers * budget.plan(wanted, nic).bytes


def planned_staging(workers: int) -> int:
    """Bytes of a worker's ring, as ``treecast memory`` has them."""
    nic = budget.of_worker(None, STAGING, workers, OUTSTANDING)
    its = budget.plan(budget.Collective(ranks=2, roots=2, block_bytes=SIZE, mtu=MTU), nic)
    return next(part.bytes for part in its.parts if part.name == "staging")


def staging_of(pid: int | None) -> int:
    """Bytes of the packet socket's ring that a process has mapped."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    ends = [line.split()[0].split("-") for line in lines if "socket:[" in line]
    return sum(int(stop, 16) - int(start, 16) for start, stop in ends)


@pytest.mark.parametrize(
    ("workers", "memory", "rounds"),
    [
        (1, None, [1, 1, 1, 1]),
        (2, None, [1, 1, 1, 1]),
        (1, memory_for(64, 1), [3, 1, 2, 1]),
        (2, memory_for(64, 2), [2, 1, 1, 1]),
    ],
)
def test_collectives_run_on_the_nics_and_arrive_in_the_applications_memory(
    tmp_path: Path, workers: int, memory: int | None, rounds: list[int]
) -> None:
    """Of 74 chunks a block."""

    def body() -> None:
        with two_hosts(tmp_path, workers, memory) as network:
            hosts = fork_offloaded(2, workers)
            for host, setup in zip(hosts, network.setups, strict=True):
                host.send(setup)
            for host in hosts:
                assert host.pipe.recv() == Ready()
                for worker in host.engines:
                    assert staging_of(worker.pid) == pytest.approx(planned_staging(workers), rel=0.1)
            for host in hosts:
                host.send(Call(collectives))
            assert [host.pipe.recv() for host in hosts] == [Returned(([0, 0, 0, 0], rounds))] * 2
            for host in hosts:
                host.send(Stop())
                for process in host.processes:
                    process.join(BOUND_S)
                    assert process.exitcode == 0

    in_sandbox(body)
