"""What a reliable connection makes of requests that come before their turn, and of answers that say so."""

from __future__ import annotations

import pytest

from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.packets import ACK, NAK_SEQUENCE, Aeth, Opcode, RcPacket, Reth
from endpoints.core.requester import Requester
from endpoints.core.responder import Responder
from endpoints.core.rto import LARGEST, RetransmissionTimeout
from tests.unit.endpoints.bulk_packets import MTU, RKEY, a_timing

TIMING: Timing = a_timing()
FIRST = 100
START = 1_000_000_000
MS = 1_000_000


def a_requester() -> Requester:
    return Requester(1, MTU, FIRST, TIMING, ProtocolConfig().read_window)


def sent(requester: Requester, now: int) -> list[int]:
    """The PSNs of all that it sends now."""
    found = []
    while (packet := requester.next_request(now)) is not None:
        found.append(packet.psn)
    return found


def a_send(psn: int) -> RcPacket:
    return RcPacket(Opcode.RC_SEND_ONLY_IMM, 1, psn, True, imm=psn, payload=b"")


def answers(responder: Responder, now: int) -> list[tuple[int, int, int]]:
    """(syndrome, PSN, MSN) of all that it says now."""
    found = []
    while (packet := responder.next_answer(now)) is not None:
        assert packet.aeth is not None
        found.append((packet.aeth.syndrome, packet.psn, packet.aeth.msn))
    return found


def an_ack(psn: int, kept: int) -> RcPacket:
    """Everything up to ``psn`` has come, and ``kept`` before its turn."""
    return RcPacket(Opcode.RC_ACKNOWLEDGE, 1, psn, aeth=Aeth(ACK, kept))


def test_a_send_before_its_turn_is_acknowledged_by_itself_and_again_when_it_comes_again() -> None:
    responder = Responder(1, MTU, FIRST, TIMING.ack_delay_ns, lambda *_: None)
    assert responder.receive(a_send(FIRST + 2), START) == "out_of_sequence"
    told = (ACK, FIRST - 1, FIRST + 2)
    assert answers(responder, START) == [told, (NAK_SEQUENCE, FIRST, FIRST)]
    assert responder.receive(a_send(FIRST + 2), START) == "duplicate"
    assert answers(responder, START) == [told]
    assert responder.next_event() is None, "it waits for its turn"


def test_only_what_has_not_come_is_repeated_soon() -> None:
    """Of four SENDs the second is lost: it is repeated a quarter of a round trip after the third is known to be kept."""
    requester = a_requester()
    for imm in range(4):
        requester.post_send(imm, b"", 1)
    assert sent(requester, START) == [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    now = START + 4 * MS
    assert requester.on_ack(an_ack(FIRST, FIRST + 2), now) is None
    assert requester.on_ack(an_ack(FIRST, FIRST + 3), now) is None
    due = requester.next_timeout()
    assert due == now + 1 * MS
    requester.handle_timer(due)
    assert sent(requester, due) == [FIRST + 1]
    assert requester.on_ack(an_ack(FIRST + 3, FIRST + 4), due + 4 * MS) is None
    assert requester.idle


def test_an_ordinary_acknowledgement_says_nothing_of_the_next_request() -> None:
    """Its message number is that of the next request, which may be lost."""
    requester = a_requester()
    for imm in range(2):
        requester.post_send(imm, b"", 1)
    sent(requester, START)
    assert requester.on_ack(an_ack(FIRST, FIRST + 1), START + MS) is None
    assert not requester.idle


def test_a_kept_send_says_nothing_of_a_read_whose_data_may_wait() -> None:
    requester = a_requester()
    requester.post_read(0, RKEY, MTU, None)
    requester.post_send(1, b"", 1)
    sent(requester, START)
    requester.on_ack(an_ack(FIRST - 1, FIRST + 1), START + MS)
    due = requester.next_timeout()
    assert due is not None
    assert due >= START + MS + TIMING.min_rto_ns


def test_data_of_a_later_read_says_that_an_earlier_one_is_lost() -> None:
    requester = a_requester()
    for at in range(2):
        requester.post_read(at * MTU, RKEY, MTU, at)
    sent(requester, START)
    data = RcPacket(Opcode.RC_READ_RESPONSE_ONLY, 1, FIRST + 1, aeth=Aeth(ACK, 0), payload=bytes(MTU))
    assert requester.on_response(data, START + 8 * MS) is None
    due = requester.next_timeout()
    assert due == START + 10 * MS
    requester.handle_timer(due)
    packet = requester.next_request(due)
    assert packet is not None
    assert packet.reth == Reth(0, RKEY, MTU)


@pytest.mark.parametrize("signs", [0, 1, 2, 10])
def test_the_reordering_time_grows_with_answers_that_came_twice_up_to_the_configured_one(signs: int) -> None:
    rto = RetransmissionTimeout(66, 50, 53)
    assert rto.reordering() == 53, "nothing is measured yet"
    rto.sample(40)
    for sign in range(signs):
        rto.premature((sign + 1) * 10_000)
    assert rto.reordering() == min(53, 10 * min(2**signs, LARGEST))
