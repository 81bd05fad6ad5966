"""The receiving side of a bulk connection: bytes in their place, whatever the order, and what is asked for again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoints.core.packets import ACK, NAK_REMOTE_ACCESS, NAK_SEQUENCE, U8, RcPacket, Reth
from endpoints.core.serial import PSN_MASK
from endpoints.core.write_requester import OVERTAKEN, WriteRequester
from endpoints.core.write_responder import WriteResponder
from tests.unit.endpoints.bulk_packets import MTU, RKEY, a_burst, a_timing, batch, packets, some_bytes

TIMING = a_timing()
FIRST = 100
NOW = 5_000_000


@dataclass
class Receiver:
    """A responder with a buffer of its own; ``done`` has the immediates of messages in place."""

    first: int = FIRST
    open: bool = True
    buffer: U8 = field(default_factory=lambda: np.zeros(64 * MTU, np.uint8))
    done: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.side = WriteResponder(1, self.first, TIMING, self._memory, lambda *told: self.done.append(told))

    def _memory(self, _rkey: int, va: int, size: int) -> U8 | None:
        return self.buffer[va : va + size] if self.open else None

    def answers(self, now: int = NOW) -> list[tuple[int, int]]:
        """(syndrome, PSN) of all that it says now."""
        found: list[RcPacket] = []
        while (packet := self.side.next_answer(now)) is not None:
            found.append(packet)
        return [(packet.aeth.syndrome, packet.psn) for packet in found if packet.aeth is not None]


def test_a_message_is_in_place_when_its_last_packet_is_and_is_acknowledged_when_asked() -> None:
    receiver, data = Receiver(), some_bytes(3 * MTU + 5)
    first, *rest = packets(a_burst(data, FIRST, va=MTU, imm=9, ask=True))
    receiver.side.receive(first, NOW)
    assert receiver.done == []
    assert receiver.answers() == [], "nobody asked"
    assert receiver.side.next_timeout() == NOW + TIMING.ack_delay_ns
    receiver.side.receive(batch(rest), NOW)
    assert receiver.done == [(RKEY, 9, len(data))]
    assert np.array_equal(receiver.buffer[MTU : MTU + len(data)], data)
    assert receiver.answers() == [(ACK, FIRST + 3)]
    assert receiver.side.next_timeout() is None


@pytest.mark.parametrize("lost", [0, 1])
def test_answers_say_what_is_in_sequence_and_what_has_come_at_all_with_psns_that_wrap(lost: int) -> None:
    receiver = Receiver(PSN_MASK - 1)
    every = packets(a_burst(some_bytes(5 * MTU), PSN_MASK - 1, ask=True))
    receiver.side.receive(batch(every[:3] + every[3 + lost :]), NOW)
    answer = receiver.side.next_answer(NOW)
    assert answer is not None
    assert answer.aeth is not None
    assert (answer.psn, answer.aeth.msn) == (2 - 2 * lost, 2)


def test_what_nobody_asked_for_is_acknowledged_a_little_later() -> None:
    receiver = Receiver()
    receiver.side.receive(batch(packets(a_burst(some_bytes(MTU), FIRST))), NOW)
    due = receiver.side.next_timeout()
    assert due == NOW + TIMING.ack_delay_ns
    assert receiver.answers(due - 1) == []
    assert receiver.answers(due) == [(ACK, FIRST)]


def test_packets_that_are_a_little_late_are_not_asked_for() -> None:
    receiver, data = Receiver(), some_bytes(6 * MTU)
    late, *others = packets(a_burst(data, FIRST))
    for packet in (*others[: OVERTAKEN - 1], late, *others[OVERTAKEN - 1 :]):
        receiver.side.receive(packet, NOW)
        assert receiver.answers() == []
    assert np.array_equal(receiver.buffer[: 6 * MTU], data)
    assert receiver.side.out_of_sequence == OVERTAKEN - 1


def test_a_packet_that_enough_newer_ones_have_overtaken_is_asked_for_once() -> None:
    receiver, data = Receiver(), some_bytes(9 * MTU)
    every = packets(a_burst(data, FIRST, ask=True))
    asked = []
    for packet in (*every[:2], *every[3:]):
        receiver.side.receive(packet, NOW)
        asked += receiver.answers()
    assert asked == [(NAK_SEQUENCE, FIRST + 2), (ACK, FIRST + 1)]
    assert receiver.done == []
    receiver.side.receive(every[2], NOW)
    assert receiver.answers(NOW + TIMING.ack_delay_ns) == [(ACK, FIRST + 8)]
    assert len(receiver.done) == 1
    assert np.array_equal(receiver.buffer[: 9 * MTU], data)


def test_a_peer_that_repeats_itself_is_told_everything_that_is_missing_and_what_has_come() -> None:
    receiver = Receiver()
    every = packets(a_burst(some_bytes(9 * MTU), FIRST))
    receiver.side.receive(batch([every[0], *every[2:5]]), NOW)
    receiver.answers()
    [probe] = packets(a_burst(some_bytes(MTU), FIRST, ask=True))
    receiver.side.receive(probe, NOW)
    assert receiver.answers() == [(NAK_SEQUENCE, FIRST + 1), (ACK, FIRST), (ACK, FIRST)]
    assert receiver.side.duplicates == 1


def test_where_access_is_refused_nothing_is_written_and_nothing_is_done() -> None:
    receiver = Receiver(open=False)
    receiver.side.receive(batch(packets(a_burst(some_bytes(3 * MTU), FIRST, ask=True))), NOW)
    assert receiver.answers() == [(NAK_REMOTE_ACCESS, FIRST), (ACK, FIRST + 2)]
    assert receiver.done == []
    assert not receiver.buffer.any()
    receiver.open = True
    receiver.side.receive(batch(packets(a_burst(some_bytes(MTU), FIRST + 3, imm=2))), NOW)
    assert receiver.done == [(RKEY, 2, MTU)], "the next message is another matter"


def test_a_message_longer_or_shorter_than_it_says_is_not_done() -> None:
    for said in (MTU, 3 * MTU):
        receiver = Receiver()
        burst = a_burst(some_bytes(2 * MTU), FIRST)
        burst.reth = Reth(0, RKEY, said)
        receiver.side.receive(batch(packets(burst)), NOW)
        assert receiver.done == []
        assert receiver.side.protocol_errors == 1
        assert not receiver.buffer[said:].any()


def test_packets_far_ahead_of_their_turn_are_not_kept() -> None:
    """Nothing that a peer may have under way is further ahead than its window."""
    receiver, limit = Receiver(), TIMING.write_window
    [far] = packets(a_burst(some_bytes(MTU), FIRST + limit))
    receiver.side.receive(far, NOW)
    assert receiver.side.out_of_sequence == 0
    assert receiver.answers() == []
    [near] = packets(a_burst(some_bytes(MTU), FIRST + limit - 1))
    receiver.side.receive(near, NOW)
    assert receiver.side.out_of_sequence == 1


def test_nothing_is_written_once_the_memory_is_not_exposed_any_more() -> None:
    """The operation has ended in the midst of a message, and its memory may be in use for another."""
    receiver, data = Receiver(), some_bytes(4 * MTU)
    first, second, *rest = packets(a_burst(data, FIRST))
    receiver.side.receive(batch([first, second]), NOW)
    receiver.open = False
    receiver.side.receive(batch(rest), NOW)
    assert np.array_equal(receiver.buffer[: 2 * MTU], data[: 2 * MTU])
    assert not receiver.buffer[2 * MTU :].any()
    assert receiver.done == []
    assert (NAK_REMOTE_ACCESS, FIRST + 2) in receiver.answers()


def test_what_comes_early_together_is_kept_and_placed_together() -> None:
    """A packet's share of the work is that of its run, also behind one that was lost."""
    receiver, data = Receiver(), some_bytes(20 * MTU)
    every = packets(a_burst(data, FIRST))
    receiver.side.receive(batch([every[0], *every[2:12]]), NOW)
    receiver.side.receive(batch([every[5], *every[14:]]), NOW)
    assert [len(run) for run in receiver.side._early.values()] == [10, 6]
    assert receiver.side.duplicates == 1
    receiver.side.receive(batch([every[13], every[1], every[12]]), NOW)
    assert len(receiver.done) == 1
    assert np.array_equal(receiver.buffer[: 20 * MTU], data)
    assert receiver.side.out_of_sequence == 17
    assert not receiver.side._early
    assert not receiver.side._kept


@given(
    sizes=st.lists(st.integers(1, 5 * MTU), min_size=1, max_size=6),
    first=st.sampled_from([0, FIRST, PSN_MASK - 3, PSN_MASK]),
    at_once=st.integers(1, 7),
    data=st.data(),
)
def test_any_order_with_duplicates_puts_every_byte_in_its_place_and_tells_every_message_once(
    sizes: list[int], first: int, at_once: int, data: st.DataObject
) -> None:
    receiver = Receiver(first)
    every, at, psn = [], 0, first
    for number, size in enumerate(sizes):
        every += packets(a_burst(some_bytes(size, number), psn, va=at, imm=number))
        psn, at = first + len(every), at + size
    copies = data.draw(st.lists(st.integers(0, len(every) - 1), max_size=5))
    order = data.draw(st.permutations([*range(len(every)), *copies]))
    for start in range(0, len(order), at_once):
        receiver.side.receive(batch(every[index] for index in order[start : start + at_once]), NOW)
    expected = np.concatenate([some_bytes(size, number) for number, size in enumerate(sizes)])
    assert np.array_equal(receiver.buffer[:at], expected)
    assert [imm for _, imm, _ in receiver.done] == list(range(len(sizes)))
    assert receiver.side.duplicates == len(copies)
    assert receiver.side.received == len(order)


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
def test_both_sides_together_get_everything_across_a_link_that_loses(loss: float) -> None:
    """With PSNs that wrap, and with acknowledgements that are lost, too."""
    first, dice = PSN_MASK - 20, np.random.default_rng(7)
    receiver, requester = Receiver(first), WriteRequester(1, MTU, first, TIMING)
    data = some_bytes(60 * MTU)
    now = NOW
    requester.heard(now)
    bursts = [
        requester.write(Reth(at, RKEY, 10 * MTU), at // MTU, data[at : at + 10 * MTU], now, ask=True)
        for at in range(0, len(data), 10 * MTU)
    ]
    while not requester.idle:
        assert now < NOW + TIMING.peer_timeout_ns, "it must not take long"
        for burst in bursts:
            arrived = [packet for packet in packets(burst) if dice.random() >= loss]
            if arrived:
                receiver.side.receive(batch(arrived), now)
        while (told := receiver.side.next_answer(now)) is not None:
            if dice.random() >= loss:
                requester.heard(now)
                requester.receive(told, now)
        bursts = list(iter(requester.next_repeat, None))
        if not bursts:
            due = [at for at in (requester.next_timeout(), receiver.side.next_timeout()) if at is not None]
            now = max(now, min(due, default=now))
            requester.handle_timer(now)
            bursts = list(iter(requester.next_repeat, None))
    assert np.array_equal(receiver.buffer[: len(data)], data)
    assert len(receiver.done) == 6
    assert (requester.repeated == 0) == (loss == 0)
