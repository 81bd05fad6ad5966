"""The barrier: nobody passes before everybody has arrived, with two messages for each rank but one."""

from __future__ import annotations

import random

import pytest

from endpoints.core.barrier import RADIX, Barrier


class Ranks:
    """``size`` barriers, and the messages between them on their way in any order."""

    def __init__(self, size: int) -> None:
        self.flying: list[tuple[int, int, int]] = []
        self.sent = 0
        self.all = [Barrier(rank, size, self._teller(rank)) for rank in range(size)]

    def _teller(self, rank: int):
        def tell(peer: int, step: int) -> None:
            self.sent += 1
            self.flying.append((rank, peer, step))

        return tell

    def deliver(self, dice: random.Random) -> None:
        """Hand out all messages, and those that follow from them, in a random order."""
        while self.flying:
            source, target, step = self.flying.pop(dice.randrange(len(self.flying)))
            self.all[target].hear(source, step)


@pytest.mark.parametrize("size", [1, 2, 3, RADIX, RADIX + 1, RADIX + 2, 54, 128, 300])
def test_nobody_passes_before_the_last_has_arrived(size: int) -> None:
    dice = random.Random(size)
    for last in {0, size // 2, size - 1}:
        ranks = Ranks(size)
        for rank in dice.sample(range(size), size):
            if rank != last:
                ranks.all[rank].start()
        ranks.deliver(dice)
        assert not any(barrier.passed for barrier in ranks.all)
        ranks.all[last].start()
        ranks.deliver(dice)
        assert all(barrier.passed for barrier in ranks.all)
        assert ranks.sent == 2 * (size - 1)


def test_those_who_are_awaited_are_named() -> None:
    ranks = Ranks(20)
    for rank in set(range(20)) - {5, 18}:
        ranks.all[rank].start()
    ranks.deliver(random.Random(1))
    assert ranks.all[0].awaited == [1, 5], "18 is below 1"
    assert ranks.all[1].awaited == [18]
    assert ranks.all[7].awaited == [0]


def test_a_message_that_comes_twice_or_from_a_stranger_means_nothing() -> None:
    sent: list[tuple[int, int]] = []
    barrier = Barrier(0, 3, lambda peer, step: sent.append((peer, step)))
    barrier.start()
    barrier.hear(1, 0)
    barrier.hear(1, 0)
    barrier.hear(9, 0)
    barrier.hear(2, 1)
    assert not sent
    barrier.hear(2, 0)
    barrier.hear(2, 0)
    assert barrier.passed
    assert len(sent) == 2


def test_depth_is_the_number_of_hops_to_the_first_rank() -> None:
    depths = [Barrier(rank, 400, lambda *_: None).depth for rank in (0, 1, RADIX, RADIX + 1, 272, 273)]
    assert depths == [0, 1, 1, 2, 2, 3]
