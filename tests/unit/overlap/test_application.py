"""What applications do in an overlap experiment, with a pretended NIC."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from endpoints.io.commands import RankResult
from endpoints.io.process import UNWRITTEN
from endpoints.nic.entries import Completion, Status
from endpoints.nic.verbs import CollectiveFailed, Nic
from experiments.overlap import application

RESULT = RankResult(0, [("done", 1)], None, {}, ring_dropped=0, cpu_seconds=0.0)


class PretendedNic(Nic):
    """Notes what it is asked for; its collectives end in ``completion`` as soon as somebody waits."""

    def __init__(self, status: Status = Status.SUCCESS) -> None:
        super().__init__([])
        self.completion = Completion(1, status, "" if status is Status.SUCCESS else "h2 is silent")
        self.registered: list[np.ndarray] = []
        self.released: list[object] = []
        self.posted: list[tuple[object, ...]] = []

    def register(self, array):
        self.registered.append(array)
        return f"region {len(self.registered)}"

    def deregister(self, region) -> None:
        self.released.append(region)

    def post(self, *arguments):
        self.posted.append(arguments)
        return SimpleNamespace(wait=self._wait)

    def _wait(self) -> None:
        if self.completion.status is not Status.SUCCESS:
            raise CollectiveFailed(self.completion)

    def result(self, handle):
        return RESULT


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    data, buffer = tmp_path / "data", tmp_path / "buffer"
    data.write_bytes(b"mine")
    buffer.write_bytes(bytes(12))
    return data, buffer


def test_a_collective_is_prepared_posted_and_concluded(files) -> None:
    nic = PretendedNic()
    application.prepare(nic, "mcast_allgather", *files)
    assert bytes(nic.registered[0]) == b"mine"
    assert set(nic.registered[1].tolist()) == {UNWRITTEN}, "no byte is right by accident, and every page is there"
    start_at = time.monotonic_ns()
    took = application.communicate(nic, start_at, 0)
    assert nic.posted == [("mcast_allgather", "region 1", "region 2", start_at)]
    assert (took.wall_ns, took.cpu_ns, took.failure) == (0, 0, None), "who does not compute waits at once"
    assert application.conclude(nic) is RESULT
    assert nic.released == ["region 1", "region 2"]
    assert nic not in application._held


def test_a_kernel_beside_a_collective_is_the_same_as_alone(files, monkeypatch) -> None:
    nic = PretendedNic()
    application.prepare(nic, "mcast_allgather", *files)
    monkeypatch.setattr(application, "compute", lambda products: application.Took(products, 1))
    assert application.alone(nic, 30) == application.communicate(nic, 0, 30) == application.Took(30, 1)


def test_a_collective_that_fails_says_why(files) -> None:
    nic = PretendedNic(Status.RETRY_EXCEEDED_ERROR)
    application.prepare(nic, "mcast_allgather", *files)
    assert application.communicate(nic, 0, 1).failure == "RETRY_EXCEEDED_ERROR: h2 is silent"


def test_the_kernel_is_as_much_work_as_was_asked_for(monkeypatch) -> None:
    multiplied: list[tuple[int, ...]] = []
    monkeypatch.setattr(np, "matmul", lambda left, right, out: multiplied.append(left.shape))
    assert application.compute(5).wall_ns > 0
    assert multiplied == [(application.SIDE, application.SIDE)] * 5


def test_an_application_can_be_given_one_cpu() -> None:
    before = os.sched_getaffinity(0)
    try:
        application.pin(PretendedNic(), max(before))
        assert os.sched_getaffinity(0) == {max(before)}
    finally:
        os.sched_setaffinity(0, before)
