"""Whoever waits for answers looks around at its own pace, whatever comes."""

from __future__ import annotations

import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from endpoints.io.commands import Ready
from experiments import muster
from experiments.muster import Muster

HOSTS = 5
AN_HOUR_S = 3600.0


@pytest.mark.parametrize(("ahead_s", "looks"), [(-AN_HOUR_S, 2), (AN_HOUR_S, 1)])
def test_answers_make_nobody_look_around_before_the_last_has_come(
    monkeypatch: pytest.MonkeyPatch, ahead_s: float, looks: int
) -> None:
    monkeypatch.setattr(muster, "LOOK_S", AN_HOUR_S)
    pipes: list[tuple[Connection, Connection]] = [Pipe() for _ in range(HOSTS)]
    hosts = {f"h{i}": cast(Any, SimpleNamespace(pipe=ours)) for i, (ours, _) in enumerate(pipes)}
    waiting = Muster(hosts, Ready, time.monotonic() + ahead_s)
    looked: list[None] = []
    for _, theirs in pipes:
        theirs.send(Ready())
        waiting.wait(until=None, look=lambda: looked.append(None))
    assert waiting.answers.keys() == hosts.keys()
    assert len(looked) == looks
