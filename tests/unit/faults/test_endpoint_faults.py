from __future__ import annotations

from multiprocessing import Pipe

import pytest

from endpoints.impairments.impairer import Impairer, Tally
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.live_faults import LiveFaults, Tallies
from experiments.errors import ExperimentFailed
from experiments.faults.endpoint_faults import EndpointFaults, spec_of
from experiments.faults.fault import parse_fault
from experiments.faults.forms import forms
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
RANKS = {host.name: host.index for host in FABRIC.hosts}


def test_the_words_are_carried_out_as_they_are_meant() -> None:
    fault = parse_fault("host h3 rx reorder psn 17,40-60 by 5ms behind 2 from h1,h2", FABRIC)
    assert spec_of(fault, RANKS) == ImpairmentSpec(
        "reorder",
        hosts=frozenset({2}),
        senders=frozenset({0, 1}),
        psns=(17, (40, 60)),
        time_ns=5_000_000,
        packets=2,
    )


@pytest.mark.parametrize("kind", sorted({form.kind for form in forms() if form.target == "host" and " " in form.kind}))
def test_every_fault_at_endpoints_can_be_carried_out_there(kind: str) -> None:
    spec = spec_of(parse_fault(f"host h3 {kind} 5%", FABRIC), RANKS)
    Impairer([spec], 1, 2, spec.direction, {})
    assert spec.acts_at(2, kind[:2])


def test_the_whole_list_is_sent_and_a_late_answer_is_not_taken_for_the_right_one() -> None:
    ours, theirs = Pipe()
    faults = EndpointFaults({"h3": 2}, {"h3": [ours]})
    theirs.send(Tallies(-1, {1: Tally(9, 9)}))
    theirs.send(Tallies(1, {1: Tally()}))
    faults.apply(1, parse_fault("host h3 rx drop 5%", FABRIC))
    assert theirs.recv() == LiveFaults(1, {1: ImpairmentSpec("drop", hosts=frozenset({2}), probability=0.05)})
    theirs.send(Tallies(2, {1: Tally(40, 2)}))
    assert faults.clear(1) == {"packets": 40, "struck": 2}
    assert theirs.recv() == LiveFaults(2, {})


def test_an_endpoint_that_is_gone_is_named_and_nothing_is_kept_of_the_fault() -> None:
    ours, theirs = Pipe()
    theirs.close()
    faults = EndpointFaults({"h3": 2}, {"h3": [ours]})
    with pytest.raises(ExperimentFailed, match="the endpoint of h3 has ended"):
        faults.apply(1, parse_fault("host h3 rx drop 5%", FABRIC))


def test_what_a_nics_workers_counted_is_told_as_one() -> None:
    (first, one), (second, other) = Pipe(), Pipe()
    faults = EndpointFaults({"h3": 2}, {"h3": [first, second]})
    for end, tally in ((one, Tally()), (other, Tally())):
        end.send(Tallies(1, {1: tally}))
    faults.apply(1, parse_fault("host h3 rx drop 5%", FABRIC))
    one.send(Tallies(2, {1: Tally(40, 2)}))
    other.send(Tallies(2, {1: Tally(30, 1)}))
    assert faults.observe(1) == {"packets": 70, "struck": 3}
