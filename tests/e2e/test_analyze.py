"""Captures of a real run read back: exactly the chunks that were injected to be lost; every frame as tshark has it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from endpoints.core.packets import Opcode
from experiments.analysis.context import Context
from experiments.analysis.report import Analysis, LossEntry, Psns, analyze
from experiments.analysis.trace import read_trace
from tests.e2e.command import NEEDS, TREECAST, Finished, run
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS, "tshark", "editcap", "mergecap")]

NAMES = ("h1", "h2", "h3", "h4", "l0-s0", "l0-s1")
OPERATION = 2
"""The one that the results are about; the first warms up."""


@dataclass(frozen=True)
class Captured:
    done: Finished
    files: list[Path]
    analysis: Analysis

    def injected(self, host: int, direction: str) -> set[int]:
        """The PSNs of multicast chunks that were dropped at a host, as the run itself noted them."""
        lines = (self.done.latest / "injected-mcast_allgather-1.jsonl").read_text().splitlines()
        hits = [json.loads(line) for line in lines]
        chosen = [hit for hit in hits if (hit["rank"], hit["direction"]) == (host - 1, direction)]
        assert {(hit["kind"], hit["opcode"], hit["imm"] >> 24) for hit in chosen} == {("drop", 0x65, OPERATION)}
        return {hit["psn"] for hit in chosen}


def numbers(psns: Psns | None) -> set[int]:
    assert psns is not None
    return {number for first, last in psns for number in range(first, last + 1)}


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("analyzed")
    done = run(
        folder, "--topo", "leafspine,leaves=2,spines=2,hosts=2", "--mtu", "1024", "--size", "64KiB", "--trees", "2",
        "--impair", "drop:rx:h3:psn=17,40-60", "--impair", "drop:tx:h1:psn=5,30-33", "--capture", ",".join(NAMES),
    )  # fmt: skip
    done.verified()
    said = subprocess.run([TREECAST, "analyze", done.latest, "--json"], check=True, capture_output=True, text=True)
    assert said.stderr == ""
    files = [done.latest / "captures" / f"{name}.pcapng" for name in NAMES]
    return Captured(done, files, Analysis.model_validate_json(said.stdout))


def lost(entries: Iterable[LossEntry], place: str) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for entry in entries:
        if entry.op == OPERATION and entry.place == place:
            found.setdefault(entry.before, set()).update(numbers(entry.psns))
    return found


def test_what_was_dropped_on_receive_is_named_exactly(captured: Captured) -> None:
    injected = captured.injected(3, "rx")
    assert injected == {17, *range(40, 61)}
    assert lost(captured.analysis.losses, "receiver") == {"h3": injected}


def test_what_was_dropped_on_send_is_named_exactly(captured: Captured) -> None:
    injected = captured.injected(1, "tx")
    assert injected == {5, *range(30, 34)}
    assert lost(captured.analysis.losses, "sender") == {"h1": injected}
    assert lost(captured.analysis.losses, "fabric") == {}, "it is missing everywhere, and named once"


def test_who_recovered_what_from_whom(captured: Captured) -> None:
    sent, received = captured.injected(1, "tx"), captured.injected(3, "rx")
    found = {entry.requester: entry for entry in captured.analysis.recoveries if entry.op == OPERATION}
    assert {who: entry.supplier for who, entry in found.items()} == {"h2": "h1", "h3": "h2", "h4": "h3"}
    assert {who: numbers(entry.psns) for who, entry in found.items()} == {"h2": sent, "h3": sent | received, "h4": sent}
    assert (numbers(found["h3"].absent), numbers(found["h3"].dropped)) == (sent, received)
    assert sum(entry.answers for entry in found.values()) == captured.done.verified().packets.recovered


def test_every_stream_passed_every_captured_point_of_its_tree(captured: Captured) -> None:
    streams = [entry for entry in captured.analysis.streams if entry.op == OPERATION]
    hosts = {(entry.capture, entry.root, entry.tree) for entry in streams if entry.capture.startswith("h")}
    assert hosts == {(f"h{at}", f"h{root}", tree) for at in range(1, 5) for root in range(1, 5) for tree in (0, 1)}
    for entry in streams:
        assert entry.frames == 32 - len(numbers(entry.missing))
        assert entry.duplicates == 0


FIELDS = (
    "frame.time_epoch", "frame.len", "eth.src", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp",
    "infiniband.immdt", "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen",
    "infiniband.aeth.syndrome",
)  # fmt: skip


def test_the_columns_are_those_of_tshark(captured: Captured) -> None:
    file = captured.files[NAMES.index("h3")]
    command = ["tshark", "-r", str(file), "-Y", "infiniband", "-T", "fields", "-E", "occurrence=f"]
    command += [word for name in FIELDS for word in ("-e", name)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    frames = read_trace([file]).frames
    assert len(told) == len(frames) > 256
    kinds = set()
    for line, frame in zip(told, frames, strict=True):
        time, size, mac, opcode, psn, qpn, imm, va, key, length, syndrome = line.split("\t")
        seconds, _, fraction = time.partition(".")
        ours = {name: int(frame[name]) for name in frame.dtype.names}
        assert ours["time_ns"] == int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
        assert (ours["size"], ours["opcode"], ours["psn"]) == (int(size), int(opcode), int(psn))
        assert (ours["src"], ours["qpn"]) == (int(mac[-2:], 16) - 1, int(qpn, 16))
        if va:
            assert (ours["va"], ours["word"], ours["bytes"]) == (int(va, 16), int(key, 16), int(length))
        elif ours["opcode"] == Opcode.UD_SEND_ONLY_IMM:
            assert ours["word"] == int(imm, 16)
        assert ours["syndrome"] == (int(syndrome, 0) if syndrome else 0)
        kinds.add(ours["opcode"])
    assert {0x65, 0x05, 0x0C, 0x11} <= kinds


def test_files_that_wireshark_writes_say_the_same(captured: Captured, tmp_path: Path) -> None:
    beside = Context.beside(captured.files[0])
    assert beside is not None
    merged, classic = tmp_path / "merged.pcapng", tmp_path / "h3.pcap"
    hosts = captured.files[:4]
    subprocess.run(["mergecap", "-w", merged, *hosts], check=True)
    subprocess.run(["editcap", "-F", "nsecpcap", captured.files[2], classic], check=True)
    one = analyze(read_trace([merged], beside[1]))
    many = analyze(read_trace(hosts, beside[1]))
    assert [entry.name for entry in one.captures] == [f"h{number}-eth0" for number in range(1, 5)]
    assert one.recoveries == many.recoveries
    assert [(entry.op, entry.place, entry.psns) for entry in one.losses] == [
        (entry.op, entry.place, entry.psns) for entry in many.losses
    ]
    plain, ours = read_trace([classic], beside[1]), read_trace([captured.files[2]], beside[1])
    assert plain.points[0].host == 2
    np.testing.assert_array_equal(plain.frames, ours.frames)


def test_the_table_and_the_figure(captured: Captured, tmp_path: Path) -> None:
    figure = tmp_path / "arrivals.png"
    command = [str(word) for word in (TREECAST, "analyze", *captured.files[:3], "--figure", figure)]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "inside h3, behind its link" in table
    assert "17,40-60" in table
    picture = figure.read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert width > height > 500
