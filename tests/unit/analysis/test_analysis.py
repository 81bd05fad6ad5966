"""Fabricated captures of four hosts on two leaves, and what is read off them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from endpoints.core.packets import Aeth, Opcode, Reth
from experiments.analysis.context import Context
from experiments.analysis.report import Analysis, RecoveryEntry, StreamEntry, analyze
from experiments.analysis.tables import tables
from experiments.analysis.trace import read_trace
from experiments.errors import UserError
from tests.unit.analysis.files import Writer
from tests.unit.analysis.run import BEGIN, CHUNKS, MS, Folder, chunk, packet, read

Timed = list[tuple[int, bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def multicast(
    op: int = 1, begin: int = 0, roots: Iterable[int] = range(4), *, without: set[int] | None = None
) -> Timed:
    """One operation: every ms a chunk of each root; ``without`` some chunks, by number."""
    return [
        (begin + index, chunk(root, index, op))
        for index in range(CHUNKS)
        for root in roots
        if root * CHUNKS + index not in (without or set())
    ]


def analysis(*captures: Path) -> Analysis:
    found = Context.beside(captures[0])
    return analyze(read_trace(captures, found[1] if found else None), str(found[0]) if found else None)


def losses(result: Analysis) -> set[tuple[str, str | None, str, tuple[int, ...]]]:
    return {
        (entry.place, entry.after, entry.before, tuple(n for first, last in entry.psns for n in range(first, last + 1)))
        for entry in result.losses
    }


def stream(result: Analysis, root: str, tree: int, op: int = 1) -> StreamEntry:
    (found,) = [entry for entry in result.streams if (entry.root, entry.tree, entry.op) == (root, tree, op)]
    return found


def test_a_clean_stream_has_its_times_its_rate_and_nothing_else(folder: Folder) -> None:
    result = analysis(folder.capture("h2", "h2-eth0", multicast()))
    found = stream(result, "h3", 1)
    assert (found.frames, found.duplicates, found.reordered, found.gaps, found.missing) == (5, 0, 0, 0, [])
    assert (found.first_ns, found.last_ns, found.silence_ns) == (BEGIN + MS, BEGIN + 9 * MS, 2 * MS)
    assert found.bytes == 4 * (256 + 70) + 74, "the last chunk is one byte with its pad"
    rate = found.rate
    assert (rate.begin_ns, rate.bin_ns) == (BEGIN, 200_000)
    assert sum(rate.bps) * rate.bin_ns // 10**9 == found.bytes * 8
    assert [at for at, bps in enumerate(rate.bps) if bps] == [5, 15, 25, 35, 45]
    assert result.losses == result.recoveries == result.pairs == result.warnings == []
    (capture,) = result.captures
    assert (capture.name, capture.interface, capture.host, capture.packets) == ("h2", "h2-eth0", "h2", 40)


def test_duplicates_and_reordered_chunks_are_told_apart(folder: Folder) -> None:
    order = [0, 4, 2, 4, 6, 8, 2]
    frames = [(time, chunk(0, index)) for time, index in enumerate(order)]
    found = stream(analysis(folder.capture("h2", "h2-eth0", frames)), "h1", 0)
    assert (found.frames, found.duplicates, found.reordered, found.missing) == (7, 2, 1, [])


def test_losses_are_named_where_they_happened(folder: Folder) -> None:
    """h1 sends neither 3 nor 8; l0 loses 5 on the way up and 6 on the way to h2; 7 is lost on the way down to h3."""
    h1 = folder.capture("h1", "h1-eth0", multicast(roots=[0], without={3, 8}))
    up = folder.capture("l0-s0", "l0-eth3", multicast(roots=[0], without={1, 3, 5, 7, 8, 9}))
    up_odd = folder.capture("l0-s1", "l0-eth4", multicast(roots=[0], without={0, 2, 3, 4, 5, 6, 8}))
    h2 = folder.capture("h2", "h2-eth0", multicast(roots=[0], without={3, 6, 8}))
    h3 = folder.capture("h3", "h3-eth0", multicast(roots=[0], without={3, 5, 7, 8}))
    result = analysis(h1, up, up_odd, h2, h3)
    of_h1 = {loss for loss in losses(result) if loss[3][0] < CHUNKS}
    assert of_h1 == {
        ("sender", None, "h1", (3,)),
        ("sender", None, "h1", (8,)),
        ("fabric", "h1", "l0-s1", (5,)),
        ("fabric", "h1", "h2", (6,)),
        ("fabric", "l0-s1", "h3", (7,)),
    }


def test_without_the_sender_s_capture_a_loss_is_somewhere_before(folder: Folder) -> None:
    result = analysis(folder.capture("h4", "h4-eth0", multicast(without={12, 13})))
    assert losses(result) == {("fabric", None, "h4", (12,)), ("fabric", None, "h4", (13,))}
    text = "".join(cell for table in tables(result) for column in table.columns for cell in column.cells)  # type: ignore[misc]
    assert "somewhere before h4" in text
    assert "12-13" in text, "the trees of a root are shown together"


def recovered(result: Analysis) -> RecoveryEntry:
    (entry,) = result.recoveries
    return entry


def test_a_recovery_says_what_from_whom_and_why(folder: Folder) -> None:
    """h3 READs 5-6, of which 6 was on its link; 9, which comes when it has asked; nothing answers for 15."""
    reads = [*read(2, 1, 5, 2, psn=0xFFFFFF), *read(2, 1, 9, 1, psn=2), read(2, 1, 15, 1, psn=4)[0]]
    frames = [
        *multicast(without={5, 9, 15}),
        *((20 + time, frame) for time, frame in enumerate(reads)),
        (24, chunk(0, 9)),
    ]
    result = analysis(folder.capture("h3", "h3-eth0", frames))
    entry = recovered(result)
    assert (entry.op, entry.requester, entry.supplier) == (1, "h3", "h2")
    assert (entry.requests, entry.repeated, entry.answers, entry.duplicates, entry.refused) == (3, 0, 3, 0, 0)
    assert (entry.psns, entry.unanswered) == ([(5, 6), (9, 9)], [(15, 15)])
    assert (entry.absent, entry.dropped, entry.late) == ([(5, 5)], [(6, 6)], [(9, 9)])
    assert entry.bytes == 256 + 256 + 1
    assert (entry.first_ns, entry.last_ns) == (BEGIN + 20 * MS, BEGIN + 24 * MS)
    assert ("receiver", "h3", "h3", (6,)) in losses(result)
    assert ("fabric", None, "h3", (5,)) in losses(result)


def test_repeated_requests_and_answers_are_counted_and_nothing_twice_for_two_captures(folder: Folder) -> None:
    first, *answers = read(2, 1, 4, 3, psn=100)
    rest = read(2, 1, 5, 2, psn=101)
    refusal = packet(1, 2, Opcode.RC_ACKNOWLEDGE, 102, aeth=Aeth(0x62, 0))
    exchange = [first, answers[0], rest[0], answers[1], answers[0], rest[0], answers[2], refusal]
    frames = [*multicast(), *((20 + time, frame) for time, frame in enumerate(exchange))]
    both = folder.capture("h3", "h3-eth0", frames), folder.capture("h2", "h2-eth0", frames)
    for captures in (both[:1], both[1:], both):
        entry = recovered(analysis(*captures))
        assert (entry.requests, entry.repeated, entry.answers, entry.duplicates) == (3, 2, 3, 1)
        assert (entry.refused, entry.psns, entry.unanswered) == (1, [(4, 6)], [])
    assert recovered(analysis(*both[1:])).dropped is None, "the requester's link was not captured"


def test_operations_are_counted_on_when_their_number_wraps(folder: Folder) -> None:
    frames = [entry for op in (254, 255, 256, 257, 258) for entry in multicast(op % 256, begin=op * 20)]
    frames += [(10_000 + time, frame) for time, frame in enumerate(read(2, 1, 3, 1, psn=1, op=258))]
    result = analysis(folder.capture("h3", "h3-eth0", frames))
    assert sorted({entry.op for entry in result.streams}) == [254, 255, 256, 257, 258]
    assert recovered(result).op == 258
    late = [entry for entry in frames if entry[0] >= 257 * 20]
    begun_late = analysis(folder.capture("late", "h3-eth0", late))
    assert sorted({entry.op for entry in begun_late.streams}) == [257, 258], "a READ holds the whole number"


def pairs(folder: Folder, exchange: Iterable[bytes]) -> Analysis:
    return analysis(folder.capture("h3", "h3-eth0", enumerate(exchange)))


def test_reliable_connections_are_counted_by_pair_and_kind(folder: Folder) -> None:
    def write(kind: Opcode, psn: int, payload: int) -> bytes:
        reth = Reth(0, 1, 600) if kind is Opcode.RC_WRITE_FIRST else None
        return packet(2, 0, kind, psn, reth=reth, payload=bytes(payload))

    def frames() -> Iterator[bytes]:
        yield write(Opcode.RC_WRITE_FIRST, 0xFFFFFE, 256)
        yield write(Opcode.RC_WRITE_MIDDLE, 0xFFFFFF, 256)
        yield write(Opcode.RC_WRITE_MIDDLE, 0xFFFFFF, 256)
        yield write(Opcode.RC_WRITE_LAST, 0, 88)
        yield packet(2, 0, Opcode.RC_SEND_ONLY_IMM, 1, imm=1 << 28 | 1, payload=bytes(4))
        yield packet(0, 2, Opcode.RC_ACKNOWLEDGE, 1, aeth=Aeth(0x1F, 0))
        yield packet(0, 2, Opcode.RC_ACKNOWLEDGE, 1, aeth=Aeth(0x60, 0))

    there, back = sorted(pairs(folder, frames()).pairs, key=lambda entry: entry.src, reverse=True)
    assert (there.src, there.dst, there.capture, there.repeated, there.naks) == ("h3", "h1", "h3", 1, 0)
    assert there.frames == {"send": 1, "write": 4, "read": 0, "answer": 0, "ack": 0}
    assert (there.payload["write"], there.payload["send"]) == (256 * 3 + 88, 4)
    assert (back.frames["ack"], back.naks, back.repeated) == (2, 1, 0)


def test_the_psns_of_each_queue_pair_are_its_own(folder: Folder) -> None:
    send, write = packet(2, 0, Opcode.RC_SEND_ONLY_IMM, 7, imm=1), packet(2, 0, Opcode.RC_WRITE_MIDDLE, 7)
    of_another = write[:47] + b"\1" + write[48:]
    (pair,) = pairs(folder, [send, of_another, of_another]).pairs
    assert pair.repeated == 1


def test_without_a_summary_what_needs_it_is_left_open(tmp_path: Path) -> None:
    folder = Folder(tmp_path, summary=False)
    reads = enumerate(read(2, 1, 5, 2, psn=3), 20)
    result = analysis(folder.capture("h3", "h3-eth0", [*multicast(without={5, 9}), *reads]))
    assert result.summary is None
    assert stream(result, "h1", 1).missing == [(5, 5)], "the last one of the block could be none"
    entry = recovered(result)
    assert (entry.psns, entry.unanswered, entry.dropped) == (None, None, None)
    assert (entry.requests, entry.answers, entry.bytes) == (1, 2, 512)


def test_a_capture_without_names_or_directions_is_placed_by_its_unicast(folder: Folder) -> None:
    frames = [*multicast(), (50, packet(2, 0, Opcode.RC_SEND_ONLY_IMM, 1, imm=1)), *enumerate(read(1, 2, 3, 1, 5), 51)]
    file = folder.path / "captures/x.pcap"
    records = [(BEGIN // 10**9, time * 1000, frame) for time, frame in frames]
    file.write_bytes(Writer(">").pcap(0xA1B2C3D4, records))
    result = analysis(file)
    assert [(entry.name, entry.interface, entry.host) for entry in result.captures] == [("x", None, "h3")]
    assert stream(result, "h2", 1).first_ns == BEGIN + MS


def test_a_cut_capture_does_not_claim_losses_at_its_end(folder: Folder) -> None:
    file = folder.capture("h3", "h3-eth0", multicast(roots=[0], without={4}))
    file.write_bytes(file.read_bytes()[:-700])
    result = analysis(file)
    assert {psns for place, _, _, psns in losses(result) if psns[0] < CHUNKS} == {(4,)}
    assert "ends in the middle of a packet" in result.warnings[0]


def test_several_interfaces_of_one_file_are_points_of_their_own(folder: Folder) -> None:
    writer = Writer()
    data = writer.section() + b"".join(
        writer.interface(writer.option(2, name), writer.option(9, b"\x09")) for name in (b"h1-eth0", b"h4-eth0")
    )
    for time, frame in multicast(roots=[0]):
        data += b"".join(writer.packet(interface, BEGIN + time * MS + interface, frame) for interface in (0, 1))
    file = folder.path / "captures/all.pcapng"
    file.write_bytes(data + writer.interface(writer.option(2, b"h1-eth0")))
    result = analysis(file)
    assert [(entry.name, entry.host, entry.roce) for entry in result.captures] == [
        ("h1-eth0", "h1", 10), ("h4-eth0", "h4", 10), ("h1-eth0-2", "h1", 0),
    ]  # fmt: skip


def test_what_was_missed_or_does_not_fit_is_told(folder: Folder) -> None:
    stranger = bytearray(chunk(0, 0))
    stranger[6] = 0x06
    file = folder.capture("h2", "h2-eth0", [*multicast(), (30, chunk(0, CHUNKS + 3)), (31, bytes(stranger))])
    from endpoints.io import pcapng

    with file.open("ab") as more:
        more.write(pcapng.statistics(BEGIN, 1, 12))
    result = analysis(file)
    assert result.warnings == [
        "capture h2: 12 packets are missing, the capturing side had no room for them",
        "1 RoCEv2 frames come from no host of ours: they are left out",
        "1 multicast chunks do not fit the run that summary.json tells of: they are left out",
    ]
    assert {entry.frames for entry in result.streams} == {5}


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: b"", "is empty"),
        (lambda data: b"PK" + data[2:], "neither pcapng nor pcap"),
        (lambda data: data + Writer().pack("II", 6, 0) + bytes(60), "cannot have 0 bytes"),
    ],
)
def test_what_is_no_capture_is_one_line(folder: Folder, damage: Damage, why: str) -> None:
    file = folder.capture("h2", "h2-eth0", multicast())
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(UserError, match=why) as told:
        analysis(file)
    assert "\n" not in str(told.value)
    assert told.value.exit_code == 2


def test_an_empty_section_is_an_empty_analysis(folder: Folder) -> None:
    result = analysis(folder.capture("h2", "h2-eth0", []))
    assert (result.streams, result.losses, result.recoveries, result.pairs) == ([], [], [], [])
    assert Analysis.model_validate_json(result.to_json()) == result
