from __future__ import annotations

import pytest

from experiments.errors import UserError
from experiments.faults.fault import parse_fault
from experiments.faults.forms import forms
from experiments.faults.link_faults import counts, impairment_of, refusal
from experiments.faults.quantities import directions
from topo.impairments.model import Observed
from topo.impairments.registry import NETEM, parse
from topo.registry import parse_topology
from topo.shaping import LinkSpec

WITHOUT_NETEM = NETEM - {"netem"}
FABRIC = parse_topology("fattree,k=4")


@pytest.mark.parametrize(
    ("words", "kind", "parameters"),
    [
        ("loss 2%", "loss", {"share": 0.02}),
        ("drop psn 17,40-60", "exact", {"psn": ((17, 17), (40, 60))}),
        ("drop every 100", "exact", {"every": 100, "opcode": None}),
        ("drop opcode rc-acknowledge,rc-read-request", "exact", {"opcode": ((0x11, 0x11), (0x0C, 0x0C))}),
        ("drop psn 7 opcode ud-send-only-imm", "exact", {"psn": ((7, 7),), "opcode": ((0x65, 0x65),)}),
        ("reorder 10% by 5ms", "reorder", {"share": 0.1, "by": 5000}),
        ("delay 5ms jitter 1ms", "delay", {"by": 5000, "jitter": 1000}),
        ("rate 10", "rate", {"rate": 10_000_000}),
        ("queue 20", "queue", {"packets": 20}),
        ("blackhole", "blackhole", {}),
    ],
)
def test_the_words_are_the_impairment_that_they_mean(words: str, kind: str, parameters: dict[str, object]) -> None:
    found = impairment_of(parse_fault(f"link e00-a00 {words}", FABRIC))
    assert found.kind == kind
    assert {key: found.parameters[key] for key in parameters} == parameters


def test_bursts_have_the_share_and_the_mean_length_that_were_asked_for() -> None:
    found = impairment_of(parse_fault("link e00-a00 loss 2% burst 5", FABRIC)).parameters
    bad, back = found["p"], found["r"]
    assert isinstance(bad, float)
    assert isinstance(back, float)
    assert 1 / back == pytest.approx(5)
    assert bad / (bad + back) == pytest.approx(0.02)


def test_bursts_that_never_end_are_refused() -> None:
    with pytest.raises(UserError, match="write blackhole"):
        impairment_of(parse_fault("link e00-a00 loss 100% burst 5", FABRIC))


def test_every_form_of_a_link_is_an_impairment_or_a_failure() -> None:
    values = {"PROBABILITY": "2%", "TIME": "5ms", "COUNT": "3", "RATE": "10", "PSNS": "4", "OPCODES": "rc-acknowledge"}
    for form in forms():
        if form.target != "link" or form.kind == "down":
            continue
        clauses = [c for c in form.clauses if not c.optional]
        words = " ".join(f"{c.word or ''} {values[c.quantity]}" for c in clauses)
        assert impairment_of(parse_fault(f"link e00-a00 {form.kind} {words}", FABRIC)).kind


def test_a_link_is_both_directions_an_arrow_one_and_a_star_all_of_all_links() -> None:
    assert len(set(directions("*", FABRIC))) == 2 * len(FABRIC.links)
    assert directions("e00-a00", FABRIC) == (("e00", "a00"), ("a00", "e00"))
    assert directions("a00->e00", FABRIC) == (("a00", "e00"),)


@pytest.mark.parametrize(
    ("words", "features", "reason"),
    [
        ("link e00-a00 loss 2%", WITHOUT_NETEM, None),
        ("link e00-a00 loss 2% burst 5", WITHOUT_NETEM, "no netem"),
        ("link e00-a00 loss 2% burst 5", NETEM, None),
        ("link e00->a00 delay 5ms", WITHOUT_NETEM, "needs netem"),
        ("link e00-a00 rate 60", NETEM, "more than the link's"),
        ("link e00-a00 down", frozenset(), None),
        ("switch a00 down", frozenset(), None),
    ],
)
def test_what_cannot_be_carried_out_is_told_beforehand(
    words: str, features: frozenset[str], reason: str | None
) -> None:
    found = refusal(parse_fault(words, FABRIC), FABRIC, LinkSpec(50_000_000, mtu=4160), features)
    assert (found is None) == (reason is None)
    assert reason is None or reason in str(found)


def test_counts_of_all_directions_are_told_together_with_what_came_by() -> None:
    loss, rate = parse("loss", ["1%"]), parse("rate", ["10"])
    one = Observed("1", loss, "bpf", seeded=True, effect="dropped", struck=2, queued=98)
    other = Observed("2", loss, "bpf", seeded=True, effect="dropped", struck=1, queued=199)
    assert counts([one, other]) == {"packets": 300, "dropped": 3}
    assert counts([Observed("3", rate, "shaping", seeded=True, effect="changed", queued=5)]) == {}
    full = Observed("4", parse("reorder", ["1%"]), "bpf", seeded=True, effect="delayed", struck=4, lost=1, queued=99)
    assert counts([full]) == {"packets": 100, "delayed": 4, "lost": 1}
