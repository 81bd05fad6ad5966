from __future__ import annotations

import pytest

from experiments.errors import UserError
from experiments.faults.timeline import Clear, Moment, Step, check_clears, parse_what, split_step
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")


@pytest.mark.parametrize(
    "text",
    [
        "at 1.5s: link e00-a00 loss 2% for 3s",
        "at 0s: host h7 kill",
        "at 300ms of operation 2: clear 1",
    ],
)
def test_a_step_is_read_back_from_its_words(text: str) -> None:
    moment, words = split_step(text)
    assert str(Step(moment, parse_what(words, FABRIC))) == text


@pytest.mark.parametrize(
    "text", ["link e00-a00 loss 2%", "at : host h7 kill", "at 5: host h7 kill", "at 1s of operation 0: host h7 kill"]
)
def test_what_is_no_step_is_told(text: str) -> None:
    with pytest.raises(UserError, match=r"write a time|counted from 1"):
        split_step(text)


def test_only_an_earlier_fault_can_be_cleared() -> None:
    fault = parse_what("link e00-a00 loss 2%", FABRIC)
    check_clears((Step(Moment(0), fault), Step(Moment(1), Clear(1))))
    for wrong in (Clear(0), Clear(1), Clear(2)):
        with pytest.raises(UserError, match="no such fault before it"):
            check_clears((Step(Moment(0), wrong), Step(Moment(1), fault)))
