"""The sending side of a bulk connection: what it repeats, and when; what it makes of answers."""

from __future__ import annotations

import pytest

from endpoints.core.liveness import DEAF
from endpoints.core.packets import ACK, NAK_REMOTE_ACCESS, NAK_SEQUENCE, Aeth, Opcode, RcPacket, Reth, WriteBurst
from endpoints.core.serial import PSN_MASK
from endpoints.core.write_requester import ACKS_PER_WINDOW, OVERTAKEN, PROBES, WriteRequester
from tests.unit.endpoints.bulk_packets import MTU, RKEY, a_timing, some_bytes

TIMING = a_timing()
FIRST = 100
START = 1_000_000_000


def a_requester(first: int = FIRST) -> WriteRequester:
    requester = WriteRequester(1, MTU, first, TIMING)
    requester.heard(START)
    return requester


def write(requester: WriteRequester, count: int, now: int = START, *, ask: bool = True) -> WriteBurst:
    """A WRITE of ``count`` packets."""
    return requester.write(Reth(0, RKEY, count * MTU), 0, some_bytes(count * MTU), now, ask=ask)


def answer(psn: int, syndrome: int = ACK, highest: int | None = None) -> RcPacket:
    aeth = Aeth(syndrome, (psn if highest is None else highest) & PSN_MASK)
    return RcPacket(Opcode.RC_ACKNOWLEDGE, 1, psn & PSN_MASK, aeth=aeth, bulk=True)


def repeats(requester: WriteRequester) -> list[int]:
    """The PSNs that it sends again now."""
    found = []
    while (burst := requester.next_repeat()) is not None:
        assert burst.stop == burst.first + 1
        assert burst.ack_request
        found.append((burst.psn + burst.first) & PSN_MASK)
    return found


def test_a_write_is_sent_whole_and_an_acknowledgement_covers_all_before_it() -> None:
    requester = a_requester()
    burst = write(requester, 5)
    assert (burst.psn, burst.first, burst.stop, burst.ack_request) == (FIRST, 0, 5, True)
    assert write(requester, 2).psn == FIRST + 5
    assert requester.under_way == 7
    assert requester.receive(answer(FIRST + 3), START) is None
    assert (requester.under_way, requester.idle) == (3, False)
    assert requester.receive(answer(FIRST + 6), START) is None
    assert requester.idle
    assert requester.next_timeout() is None


def test_only_the_packet_that_a_nak_names_is_repeated_and_only_once() -> None:
    requester = a_requester()
    write(requester, 8)
    assert requester.receive(answer(FIRST + 2, NAK_SEQUENCE, FIRST + 5), START) is None
    assert requester.receive(answer(FIRST + 2, NAK_SEQUENCE, FIRST + 6), START) is None
    assert repeats(requester) == [FIRST + 2]
    requester.receive(answer(FIRST + 2, NAK_SEQUENCE, FIRST + 7), START)
    assert repeats(requester) == [], "the repeat is on its way"
    assert requester.repeated == 1


def test_a_repeat_that_enough_newer_packets_have_overtaken_is_lost_again() -> None:
    requester = a_requester()
    write(requester, 4)
    requester.receive(answer(FIRST + 1, NAK_SEQUENCE), START)
    assert repeats(requester) == [FIRST + 1]
    write(requester, 8)
    newest = FIRST + 4  # the first new packet behind the repeat
    requester.receive(answer(FIRST, ACK, newest + OVERTAKEN - 1), START)
    assert repeats(requester) == [], "so far it may only be late"
    requester.receive(answer(FIRST, ACK, newest + OVERTAKEN), START)
    assert repeats(requester) == [FIRST + 1]


def test_what_is_acknowledged_meanwhile_is_not_repeated() -> None:
    requester = a_requester()
    write(requester, 4)
    requester.receive(answer(FIRST + 1, NAK_SEQUENCE), START)
    requester.receive(answer(FIRST + 3), START)
    assert repeats(requester) == []
    assert requester.idle


def test_when_nothing_is_answered_the_oldest_packets_are_probes() -> None:
    requester = a_requester()
    write(requester, 9)
    due = requester.next_timeout()
    assert due is not None
    assert due > START
    assert requester.handle_timer(due - 1) is False
    assert repeats(requester) == []
    assert requester.handle_timer(due) is False
    assert repeats(requester) == list(range(FIRST, FIRST + PROBES))
    later = requester.next_timeout()
    assert later is not None
    assert later - due > due - START, "and next time it has more patience"


def test_repeats_that_nothing_newer_can_overtake_are_repeated_with_the_oldest() -> None:
    """At the end of a stream nothing newer tells that a repeat was lost; it must not wait for a timeout of its own."""
    requester = a_requester()
    write(requester, 20)
    for missing in (9, 12, 15):
        assert requester.receive(answer(FIRST + missing, NAK_SEQUENCE), START) is None
    assert repeats(requester) == [FIRST + 9, FIRST + 12, FIRST + 15]
    due = requester.next_timeout()
    assert due is not None
    requester.handle_timer(due)
    assert repeats(requester) == [*range(FIRST, FIRST + PROBES), FIRST + 9, FIRST + 12, FIRST + 15]


@pytest.mark.parametrize("alive", [False, True])
def test_a_peer_is_given_up_that_says_nothing_or_answers_nothing_for_long(alive: bool) -> None:
    requester = a_requester()
    write(requester, 1)
    now = START
    while not requester.failed:
        now = requester.next_timeout() or 0
        assert now, "it has a next timeout until it gives up"
        if alive:
            requester.heard(now)
        assert requester.handle_timer(now) is requester.failed
    patience = TIMING.peer_timeout_ns * (DEAF if alive else 1)
    assert START + patience <= now <= START + 2 * patience
    assert requester.under_way == 0
    assert requester.next_timeout() is None
    assert not requester.acknowledged(RKEY), "what nobody will acknowledge is not acknowledged"
    assert requester.acknowledged(RKEY + 1)
    assert requester.receive(answer(FIRST), now) == "connection_lost"


def test_answers_that_are_of_no_use_say_why() -> None:
    requester = a_requester()
    write(requester, 4)
    requester.receive(answer(FIRST + 1), START)
    assert requester.receive(answer(FIRST + 1), START) == "duplicate"
    assert requester.receive(answer(FIRST + 4), START) == "stale", "it has not been sent"
    assert requester.receive(answer(FIRST + 1, NAK_SEQUENCE), START) == "stale", "it has come"
    assert requester.receive(RcPacket(Opcode.RC_ACKNOWLEDGE, 1, FIRST), START) == "unsupported_opcode"
    assert requester.under_way == 2
    assert repeats(requester) == []


def test_a_refusal_is_no_loss() -> None:
    requester = a_requester()
    write(requester, 2)
    assert requester.receive(answer(FIRST, NAK_REMOTE_ACCESS), START) is None
    assert requester.refused
    assert repeats(requester) == []


def test_psns_wrap_within_a_message() -> None:
    first = PSN_MASK - 2
    requester = a_requester(first)
    assert write(requester, 8).psn == first
    requester.receive(answer(first + 4, NAK_SEQUENCE, first + 7), START)
    assert repeats(requester) == [1]
    assert requester.receive(answer(first + 3), START) is None
    assert requester.under_way == 4
    assert requester.receive(answer(first + 7), START) is None
    assert requester.idle
    assert write(requester, 1).psn == 5


def test_acknowledgements_are_asked_for_some_times_in_a_window() -> None:
    requester = a_requester()
    asked = [write(requester, 1, ask=False).ack_request for _ in range(TIMING.write_window)]
    assert abs(sum(asked) - ACKS_PER_WINDOW) <= 1
    assert not asked[0]
    assert write(requester, 1, ask=True).ack_request
