from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpoints.core.packets import Opcode
from endpoints.impairments.registry import impairments
from experiments.errors import UserError
from experiments.faults.fault import Fault, continuations, parse_fault
from experiments.faults.forms import PLACES, Clause, Form, forms
from experiments.faults.quantities import QUANTITIES, Value
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")

PSNS = st.one_of(st.integers(0, 1 << 23), st.tuples(st.integers(0, 1 << 22), st.integers(1 << 22, (1 << 24) - 1)))
VALUES: dict[str, st.SearchStrategy[Value]] = {
    **{name: st.sampled_from(sorted(QUANTITIES[name].names(FABRIC))) for name in ("LINK", "WIRE", "SWITCH", "HOST")},
    "HOSTS": st.lists(st.sampled_from(sorted(FABRIC.host)), min_size=1, max_size=3).map(tuple),
    "PROBABILITY": st.floats(0, 1, exclude_min=True),
    "TIME": st.integers(1, 10**12),
    "RATE": st.integers(1, 10**12),
    "COUNT": st.integers(1, 10**6),
    "PART": st.sampled_from(["application", "nic", "worker"]),
    "OPCODES": st.lists(st.sampled_from(Opcode).map(int), min_size=1, max_size=3).map(tuple),
    "PSNS": st.lists(PSNS, min_size=1, max_size=4).map(tuple),
}


@st.composite
def faults(draw: st.DrawFn, form: Form) -> Fault:
    def value(clause: Clause) -> Value | None:
        return None if clause.optional and draw(st.booleans()) else draw(VALUES[clause.quantity])

    place = draw(VALUES[form.place]) if form.place else ""
    assert isinstance(place, str)
    values = {clause.name: value(clause) for clause in form.clauses}
    duration = values.pop("for", None)
    assert duration is None or isinstance(duration, int)
    return Fault(form, place, tuple((name, v) for name, v in values.items() if v is not None), duration)


@settings(deadline=None)
@given(st.sampled_from(forms()).flatmap(faults))
def test_every_fault_is_read_back_from_its_words(fault: Fault) -> None:
    again = parse_fault(str(fault), FABRIC)
    assert again == fault
    assert str(again) == str(fault)


@pytest.mark.parametrize(
    "words",
    [
        "link e00-a00 loss 2%",
        "link h5-e10 reorder 10% by 5ms",
        "link c0-a10 rate 10",
        "link a00->e00 loss 0.5% burst 5 for 3s",
        "link e00-a00 drop every 3 opcode rc-acknowledge,rc-read-request",
        "link * loss 1%",
        "link e00-a00 down",
        "switch a10 down for 3s",
        "host h3 rx drop psn 17,40-60",
        "host h3 rx reorder 5% by 20ms behind 3 from h1,h2 for 1.5s",
        "host h7 kill",
        "host h7 kill worker",
        "controller kill",
    ],
)
def test_words_as_people_write_them_stay_as_they_are(words: str) -> None:
    assert str(parse_fault(words, FABRIC)) == words


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "ends too early, expected link, switch, host, controller or vswitchd"),
        ("lnk e00-a00", "'lnk': expected link, switch, host, controller or vswitchd; did you mean link?"),
        ("link e00-a99 loss 2%", "no link between e00 and a99 in fattree; did you mean e00-a01 or e00-a00"),
        ("link e00-a00 los 2%", "'los': expected loss, drop, "),
        ("link e00-a00 los 2%", "did you mean loss?"),
        ("link e00-a00 loss 2", "probability '2': write a percentage like 1% or 0.5%"),
        ("link e00-a00 loss 0%", "must be above 0%"),
        ("link e00-a00 loss 2% brust 4", "'brust': expected burst or for; did you mean burst?"),
        ("link e00-a00 loss 2% burst", "ends too early, expected a number like 100"),
        ("link e00-a00 loss 2% for 3s x", "'x': expected nothing more"),
        ("link e00->a00 down", "'down': expected loss, "),
        ("link * down", "'down': expected loss, "),
        ("link e00-a00 drop opcode rc-ack", "opcode 'rc-ack': known are rc-send-first"),
        ("switch a10 up", "'up': expected down"),
        ("host h77 kill", "no host 'h77' in fattree; did you mean h7?"),
        ("host h7 kill for 3s", "no part of a host 'for' in fattree"),
        ("host h3 rx drop psn x", "PSNs 'x': numbers and ranges"),
        ("host h3 rx drop 1% from h1,h99", "no host 'h99'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_the_word_and_what_was_expected(words: str, complaint: str) -> None:
    with pytest.raises(UserError) as problem:
        parse_fault(words, FABRIC)
    said = str(problem.value)
    assert said.startswith(f"fault {words!r}: ")
    assert complaint in said
    assert "\n" not in said


def test_every_impairment_of_endpoints_can_be_said_in_both_directions() -> None:
    kinds = {form.kind for form in forms() if form.target == "host"}
    assert {f"{way} {name}" for way in ("rx", "tx") for name in impairments()} <= kinds


def test_no_two_forms_are_said_alike() -> None:
    assert len({form.words for form in forms()}) == len(forms())
    assert {form.target for form in forms()} >= PLACES.keys()


def test_what_may_follow_is_known_for_completion() -> None:
    assert continuations([], FABRIC) == ["link", "switch", "host", "controller", "vswitchd"]
    assert continuations(["switch"], FABRIC) == list(FABRIC.switch)
    assert {"e00-a00", "a00-e00", "a00->e00"} <= set(continuations(["link"], FABRIC))
    assert continuations(["link", "e00-a00", "loss", "2%"], FABRIC) == ["burst", "for"]
    assert continuations(["host", "h3", "kill"], FABRIC) == ["application", "nic", "worker"]
    assert continuations(["host", "h3", "kill", "nic"], FABRIC) == []
    assert continuations(["host", "h3", "nonsense"], FABRIC) == []
