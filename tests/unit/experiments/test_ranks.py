from __future__ import annotations

from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest

from endpoints.io.process import RankResult, Stop
from experiments import ranks
from experiments.buffers import Buffers
from experiments.communicators import communicator
from experiments.errors import ExperimentFailed
from experiments.ranks import Ranks
from experiments.scenario import Scenario

SCENARIO = Scenario.of({"topology": "single,hosts=3", "peer_timeout_ns": 0})
COMM = communicator(SCENARIO.fabric, mtu=4096, rate_bps=SCENARIO.link_rate_bps)


def result(rank: int, failure: tuple[str, int | None] | None = None) -> RankResult:
    return RankResult(rank, [], failure, {}, 0, 0.0)


@pytest.fixture
def far_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Ranks, list[Connection]]:
    """Ranks whose endpoints are the test's, which says nothing but what it is told to say."""
    pipes = [Pipe() for _ in range(COMM.size)]
    hosts = [SimpleNamespace(rank=rank, pipe=ours, send=ours.send) for rank, (ours, _) in enumerate(pipes)]
    monkeypatch.setattr(ranks, "fork_hosts", lambda _count: hosts)
    monkeypatch.setattr(ranks, "AFTER_FAILURE_S", 0.0)
    monkeypatch.setattr(ranks, "LOOK_S", 0.0)
    return Ranks(SCENARIO, COMM, tmp_path, Buffers(tmp_path / "buffers", COMM.size)), [theirs for _, theirs in pipes]


def test_who_does_not_end_when_told_is_named_and_nobody_waits_for_it(far_ends: tuple[Ranks, list[Connection]]) -> None:
    endpoints, pipes = far_ends
    pipes[0].send(result(0, ("rank 2 does not answer", 2)))
    pipes[1].send(result(1))
    with pytest.raises(ExperimentFailed, match=r"^h3 \(rank 2\): no answer, the endpoint seems to be stopped$"):
        endpoints._collect(lambda: None)
    assert pipes[2].recv() == Stop(), "it was told to end before it was given up"


def test_who_ends_when_told_is_waited_for(far_ends: tuple[Ranks, list[Connection]]) -> None:
    endpoints, pipes = far_ends
    pipes[0].send(result(0, ("rank 2 does not answer", 2)))
    pipes[1].send(result(1))

    endpoints._hosts[2].send = lambda command: pipes[2].send(result(2)) if command == Stop() else None  # type: ignore[method-assign]
    assert [found.rank for found in endpoints._collect(lambda: None)] == [0, 1, 2]
