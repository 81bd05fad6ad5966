"""What every impairment must be, whoever wrote it: this walks the registry."""

from __future__ import annotations

import numpy as np
import pytest

from endpoints.core.packets import UdBurst
from endpoints.impairments.impairer import Impairer
from endpoints.impairments.registry import impairment, impairments
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.wire.codec import Codec, stack
from endpoints.wire.templates import build_templates
from experiments.communicators import communicator
from experiments.scenario import Scenario
from topo.registry import parse_topology

COUNT = 2000
HOST, SENDER = 2, 1
COMM = communicator(parse_topology("single,hosts=4"), mtu=256, rate_bps=50_000_000)
CODECS = [Codec(COMM, rank, build_templates()) for rank in range(4)]
RANKS = {peer.ip: peer.rank for peer in COMM.peers}

any_kind = pytest.mark.parametrize("kind", impairments())


def packets() -> tuple[np.ndarray, np.ndarray]:
    psn = np.arange(COUNT, dtype=np.uint32)
    payloads = [np.full(16, number % 251, np.uint8) for number in range(COUNT)]
    return stack(CODECS[SENDER].encode_burst(UdBurst(0, psn, psn | np.uint32(7 << 24), payloads)), COMM.mtu)


def made(*specs: ImpairmentSpec, seed: int = 1) -> Impairer:
    return Impairer(specs, seed, HOST, "rx", RANKS)


def through(faults: Impairer, batch: int = COUNT, order: np.ndarray | None = None) -> tuple[list[bytes], list[bytes]]:
    """What came out at once and what came out later; ``order`` is that in which the packets come."""
    frames, lengths = packets()
    order = np.arange(COUNT) if order is None else order
    frames, lengths = frames[order], lengths[order]
    at_once = []
    for start in range(0, COUNT, batch):
        some = slice(start, start + batch)
        at_once += [p for part in faults.apply(frames[some], lengths[some], 0) for p in _cut(*part)]
    later = []
    while (at := faults.next_timeout()) is not None:
        later += [p for part in faults.due(at) for p in _cut(*part)]
    return at_once, later


def _cut(frames: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    return [bytes(row[:length]) for row, length in zip(frames, lengths, strict=True)]


def originals() -> list[bytes]:
    return _cut(*packets())


def psn_of(frame: bytes) -> int:
    return int.from_bytes(frame[51:54], "big")


@any_kind
def test_the_same_seed_strikes_the_same_packets_whatever_their_order_and_grouping(kind: str) -> None:
    spec = ImpairmentSpec(kind, probability=0.2)
    shuffled = np.random.default_rng(0).permutation(COUNT)
    hits = []
    for batch, order in ((COUNT, None), (7, None), (64, shuffled)):
        faults = made(spec)
        through(faults, batch, order)
        hits.append(sorted(faults.log))
    assert hits[0] == hits[1] == hits[2]
    other = made(spec, seed=2)
    through(other)
    assert sorted(other.log) != hits[0]


@any_kind
def test_it_strikes_as_often_as_it_is_told(kind: str) -> None:
    for share in (0.0, 0.05, 0.5, 1.0):
        faults = made(ImpairmentSpec(kind, probability=share))
        through(faults)
        deviation = 5 * (COUNT * share * (1 - share)) ** 0.5  # five standard deviations of a binomial
        assert abs(len(faults.log) - COUNT * share) <= deviation


@any_kind
def test_packets_that_it_does_not_strike_pass_at_once_and_unaltered(kind: str) -> None:
    faults = made(ImpairmentSpec(kind, probability=0.3))
    at_once, _ = through(faults)
    struck = {hit.psn for hit in faults.log}
    spared = {frame: None for frame in originals() if psn_of(frame) not in struck}
    assert len(spared) == COUNT - len(faults.log)
    assert [frame for frame in at_once if frame in spared] == list(spared)


@any_kind
def test_a_packet_that_it_strikes_does_not_pass_as_if_nothing_had_been(kind: str) -> None:
    faults = made(ImpairmentSpec(kind, psns=(3, (10, 12))))
    at_once, later = through(faults)
    assert [hit.psn for hit in faults.log] == [3, 10, 11, 12]
    whole = originals()
    for number in (3, 10, 11, 12):
        assert (at_once.count(whole[number]), later.count(whole[number])) != (1, 0)


def outcome(kind: str) -> tuple[int, int, int]:
    """Of ten packets struck: copies that are right and at once, right and late, and refused by their ICRC."""
    at_once, later = through(made(ImpairmentSpec(kind, psns=((0, 9),))))
    known = set(originals())
    whole = set(originals()[:10])
    strangers = [frame for frame in (*at_once, *later) if frame not in known]
    refused = CODECS[HOST].decode(*stack(strangers, COMM.mtu)).rejected if strangers else {}
    assert sum(refused.values()) == refused.get("bad_icrc", 0) == len(strangers)
    return sum(f in whole for f in at_once), sum(f in whole for f in later), len(strangers)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("corrupt", (0, 0, 10)),
        ("delay", (0, 10, 0)),
        ("drop", (0, 0, 0)),
        ("duplicate", (20, 0, 0)),
        ("reorder", (0, 10, 0)),
    ],
)
def test_it_does_what_its_name_says(kind: str, expected: tuple[int, int, int]) -> None:
    assert outcome(kind) == expected


@any_kind
def test_it_is_read_from_a_scenario_and_written_back(kind: str) -> None:
    wanted = {"kind": kind, "hosts": "h3,0", "senders": "h1", "psns": [1, 5], "direction": "tx"}
    if impairment(kind).default_time_ns is not None:
        wanted["time_ns"] = "3ms"
    scenario = Scenario.of({"impairments": [wanted]})
    (entry,) = scenario.impairments
    assert (entry.kind, entry.hosts, entry.senders, entry.psns) == (kind, ("h3", "h1"), ("h1",), (1, 5))
    assert entry.time_ns == (3_000_000 if "time_ns" in wanted else None)
    assert Scenario.of(scenario.model_dump(mode="json")) == scenario


@any_kind
def test_it_says_what_it_is(kind: str) -> None:
    assert impairment(kind).name == kind
    assert impairment(kind).summary
