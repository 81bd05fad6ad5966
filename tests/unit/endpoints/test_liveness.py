"""When a peer counts as lost: dead, or deaf."""

from __future__ import annotations

import pytest

from endpoints.core.liveness import DEAF, Liveness

TIMEOUT = 1_000
START = 5_000


@pytest.fixture
def liveness() -> Liveness:
    peer = Liveness(TIMEOUT)
    peer.heard(START)
    peer.answered(START)
    return peer


def test_a_peer_that_neither_answers_nor_sends_is_lost_after_the_timeout(liveness: Liveness) -> None:
    assert not liveness.lost(START + TIMEOUT - 1)
    assert liveness.lost(START + TIMEOUT)


def test_a_peer_that_sends_but_does_not_answer_has_longer(liveness: Liveness) -> None:
    for now in range(START, START + DEAF * TIMEOUT, TIMEOUT // 2):
        liveness.heard(now)
        assert not liveness.lost(now)
    assert liveness.lost(START + DEAF * TIMEOUT)


def test_a_peer_that_answers_is_not_lost_however_long_it_takes(liveness: Liveness) -> None:
    for now in range(START, START + 10 * TIMEOUT, TIMEOUT // 2):
        liveness.answered(now)
        assert not liveness.lost(now)
