"""What cannot be sent is refused at once, with the value and what would be right."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core.packets import Aeth, Opcode, RcPacket, Reth, UdBurst
from endpoints.wire.codec import Codec
from endpoints.wire.encode import source_port


def burst(group: int = 0, psn: tuple[int, ...] = (1,), imm: tuple[int, ...] = (1,), lengths: tuple[int, ...] = (4,)):
    payloads = [np.zeros(n, np.uint8) for n in lengths]
    return UdBurst(group, np.array(psn, np.uint32), np.array(imm, np.uint32), payloads)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (burst(group=2), "multicast tree 2: this communicator has 0 to 1"),
        (burst(group=-1), "multicast tree -1"),
        (burst(lengths=(1025,)), "payload of 1025 bytes: the path MTU is 1024"),
        (burst(psn=(1 << 24,)), "PSN 16777216: it has 24 bits"),
        (burst(psn=(1, 2)), "1 payloads, 2 PSNs and 1 immediates"),
        (burst(imm=(1, 2)), "1 payloads, 1 PSNs and 2 immediates"),
        (RcPacket(Opcode.RC_SEND_ONLY, 5, 0), "rank 5: this communicator has 0 to 4"),
        (RcPacket(Opcode.RC_SEND_ONLY, -1, 0), "rank -1"),
        (RcPacket(Opcode.RC_SEND_ONLY, 3, 1 << 24), "PSN 16777216: it has 24 bits"),
        (RcPacket(Opcode.RC_SEND_ONLY, 3, 0, payload=bytes(1025)), "payload of 1025 bytes: the path MTU is 1024"),
        (RcPacket(Opcode.RC_SEND_ONLY, 3, 0, imm=1), "RC_SEND_ONLY with imm"),
        (RcPacket(Opcode.RC_SEND_ONLY_IMM, 3, 0), "RC_SEND_ONLY_IMM without imm"),
        (RcPacket(Opcode.RC_WRITE_ONLY, 3, 0), "RC_WRITE_ONLY without reth"),
        (RcPacket(Opcode.RC_ACKNOWLEDGE, 3, 0), "RC_ACKNOWLEDGE without aeth"),
        (RcPacket(Opcode.RC_ACKNOWLEDGE, 3, 0, aeth=Aeth(0, 0), payload=b"x"), "payload of 1 bytes in RC_ACKNOWLEDGE"),
        (RcPacket(Opcode.RC_READ_REQUEST, 3, 0, reth=Reth(0, 0, 0), payload=b"x"), "bytes in RC_READ_REQUEST"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_sent_is_refused(sender, wrong, message):
    with pytest.raises(ValueError, match=message):
        sender.encode(wrong)


def test_unknown_rank_has_no_codec(comm, templates):
    for rank in (-1, 5):
        with pytest.raises(ValueError, match=f"rank {rank}: this communicator has 0 to 4"):
            Codec(comm, rank, templates)


def test_bursts_of_nothing_are_nothing(sender):
    assert sender.encode(burst(psn=(), imm=(), lengths=())) == []


def test_frames_do_not_change_with_later_ones(sender):
    """Nor with the payload's buffer: what is queued or held back stays as it was."""
    payload = np.arange(1024, dtype=np.uint32).astype(np.uint8)
    kept = sender.encode(UdBurst(0, np.array([1], np.uint32), np.array([1], np.uint32), [payload]))[0]
    before = bytes(kept)
    payload[:] = 0
    sender.encode(burst(lengths=(1024,)))
    assert bytes(kept) == before


@pytest.mark.parametrize("payload", [b"abcd", memoryview(b"xabcd")[1:], np.frombuffer(b"abcd", np.uint8)], ids=type)
def test_any_buffer_is_a_payload(sender, payload):
    reference = sender.encode_rc(RcPacket(Opcode.RC_SEND_ONLY, 3, 0, payload=b"abcd"))
    assert sender.encode(RcPacket(Opcode.RC_SEND_ONLY, 3, 0, payload=payload)) == [reference]


def test_source_ports_are_dynamic_stable_and_spread():
    ports = {source_port(0x0A000001 + (i << 8), 0x0A000001 + (j << 8), 0x100 + i) for i in range(16) for j in range(16)}
    assert min(ports) >= 0xC000
    assert max(ports) <= 0xFFFF
    assert len(ports) > 250  # nearly all of 256
    assert source_port(0x0A000001, 0xEF010000, 0xFFFFFF) == 51816
