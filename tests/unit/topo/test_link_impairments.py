"""What impairments of links are made of words, and what the kernel is told of them."""

from __future__ import annotations

import json

import pytest

from topo.impairments.counts import NOTHING, parse_reading
from topo.impairments.model import ImpairmentError
from topo.impairments.port import Port, Step
from topo.impairments.registry import choose, impairment, kinds, parse
from topo.shaping import LinkSpec

HERE = frozenset({"htb", "bpf", "clsact", "ifb"})
STOCK = HERE | {"netem"}
SPEC = LinkSpec(100_000_000, queue_packets=1000, mtu=4160)
PORT = Port("h1-eth0", SPEC, HERE, seed=1)

WORDS = {
    "loss": "2%",
    "gemodel": "1% 25%",
    "exact": "psn 17,40-60 every 16 opcode 0x65",
    "duplicate": "1/50",
    "reorder": "10% by 5ms",
    "delay": "5ms jitter 1ms",
    "corrupt": "0.01",
    "rate": "10",
    "queue": "50",
    "blackhole": "",
    "down": "",
}


def lines(steps: tuple[Step, ...]) -> list[str]:
    return [step.line for step in steps]


def test_every_kind_has_words_and_a_way_on_a_stock_kernel():
    assert set(WORDS) == set(kinds())
    for name, words in WORDS.items():
        asked = parse(name, words.split())
        assert parse(name, asked.text.split()[1:]) == asked
        port, steps = Port("h1-eth0", SPEC, STOCK, 1).add("f", asked)
        assert steps
        left, removal = port.remove("f")
        assert left.placed == ()
        assert removal.stop


def test_words_are_read_in_the_units_of_the_values():
    assert parse("loss", ["1/16"]).parameters == {"share": 0.0625}
    assert parse("reorder", ["10%"]).parameters == {"share": 0.1, "by": 5000}
    assert parse("rate", ["10"]).parameters == {"rate": 10_000_000}
    assert parse("rate", ["500kbit"]).parameters == {"rate": 500_000}
    assert parse("exact", ["17,40-60"]).parameters == {"psn": ((17, 17), (40, 60)), "every": None, "opcode": None}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("los 2%", "unknown impairment 'los': known are blackhole, corrupt"),
        ("loss", "loss: share is missing"),
        ("loss 0%", "loss: share 0%: a part of the frames"),
        ("loss 101%", "loss: share 101%"),
        ("loss much", "loss: share 'much'"),
        ("loss 1% 2%", "loss: '2%' is too much: it has share"),
        ("loss share", "loss: share needs a value"),
        ("delay 5ms jitter 5ms", "a jitter of 5000 us must be less"),
        ("delay 5", "delay: by '5': a time"),
        ("exact", "exact: say which packets"),
        ("exact psn 60-40", "exact: psn 60-40"),
        ("queue 0", "queue: packets 0"),
        ("blackhole 1", "has no parameters"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(words, complaint):
    with pytest.raises(ImpairmentError, match=complaint) as told:
        parse(words.split()[0], words.split()[1:])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("words", ["duplicate 1%", "corrupt 1%", "gemodel 1% 25%", "delay 5ms", "reorder 100% by 1s"])
def test_what_this_kernel_cannot_do_is_refused_with_the_cure(words):
    with pytest.raises(ImpairmentError, match=r"netem.*(host NAME rx|use loss)"):
        PORT.add("f", parse(words.split()[0], words.split()[1:]))


def test_a_mechanism_can_be_asked_for_where_it_is_there():
    loss = parse("loss", ["1%"])
    assert choose(loss, STOCK).mechanism == "bpf"
    assert choose(loss, STOCK, "netem").seeded is False
    with pytest.raises(ImpairmentError, match="no netem"):
        choose(loss, HERE, "netem")
    with pytest.raises(ImpairmentError, match="netem cannot do it: bpf can"):
        choose(impairment("blackhole"), STOCK, "netem")


def test_several_of_a_kind_have_numbers_and_dice_of_their_own():
    one, first = PORT.add("one", parse("loss", ["1%"]))
    two, second = one.add("two", parse("loss", ["1%"]))
    assert not set(lines(first)) & set(lines(second))
    assert len({placed.salt for placed in two.placed}) == 2
    left, _ = two.remove("one")
    three, again = left.add("three", parse("loss", ["1%"]))
    assert again == first
    assert len({placed.salt for placed in three.placed}) == 2
    with pytest.raises(ImpairmentError, match="there is an impairment of that name"):
        two.add("one", parse("loss", ["1%"]))


def test_clsact_stays_until_the_last_that_needs_it():
    clsact = "qdisc add dev h1-eth0 clsact"
    one, first = PORT.add("one", parse("reorder", ["1%"]))
    two, second = one.add("two", parse("reorder", ["1%"]))
    assert clsact in lines(first)
    assert clsact not in lines(second)
    left, removal = two.remove("one")
    assert lines(removal.remove) == ["link del dev h1-eth0+0"]
    assert lines(left.remove("two")[1].remove) == ["qdisc del dev h1-eth0 clsact", "link del dev h1-eth0+1"]


def test_the_shaping_is_what_the_changes_that_are_left_make_of_it():
    one, _ = PORT.add("slow", parse("rate", ["10"]))
    two, steps = one.add("short", parse("queue", ["5"]))
    assert "rate 10000000bit" in lines(steps)[0]
    assert lines(steps)[1] == "qdisc change dev h1-eth0 parent 1:1 handle 10: pfifo limit 5"
    left, removal = two.remove("slow")
    assert "rate 100000000bit" in lines(removal.stop)[0]
    assert lines(removal.stop)[1].endswith("limit 5")
    assert lines(left.remove("short")[1].stop)[1].endswith("limit 1000")


def test_each_is_counted_where_the_kernel_counts_it():
    port, _ = PORT.add("lost", parse("loss", ["1%"]))
    port, _ = port.add("late", parse("reorder", ["1%"]))
    qdiscs = [
        {"dev": "h1-eth0", "handle": "1:", "drops": 9, "qlen": 0},
        {"dev": "h1-eth0", "handle": "10:", "drops": 5, "qlen": 0},
        {"dev": "h1-eth0", "handle": "100:", "drops": 4, "qlen": 0},
        {"dev": "h1-eth0+1", "handle": "1:", "drops": 0, "qlen": 2},
    ]
    devices = "\n\nh1-eth0+1: 0 15 0 8 0 0 0 0 0 7 0 0 0 0 0 0\nh1-eth0: 0 0 0 0 0 0 0 0 0 90 0 1 0 0 0 0\n"
    reading = parse_reading(json.dumps(qdiscs), devices)
    before = parse_reading("[]", "\n\nh1-eth0: 0 0 0 0 0 0 0 0 0 20 0 0 0 0 0 0\n")
    lost, late = (reading.observed(placed, before) for placed in port.placed)
    assert (lost.struck, lost.dropped, late.struck, late.dropped) == (4, 4, 7, 0)
    assert (lost.packets, late.packets) == (70 + 1 + 5 + 4, 70 + 1 + 5), "sent, refused by a dead peer, no room, struck"
    assert not reading.empty("h1-eth0+1")
    assert parse_reading("[]", devices).empty("h1-eth0+1")


def test_frames_that_come_twice_came_by_once():
    port, _ = Port("h1-eth0", SPEC, STOCK, seed=1).add("twice", parse("duplicate", ["1%"]))
    devices = "\n\nh1-eth0: 0 0 0 0 0 0 0 0 0 103 0 0 0 0 0 0\nh1-eth0+0: 0 3 0 0 0 0 0 0 0 6 0 0 0 0 0 0\n"
    twice = parse_reading("[]", devices).observed(port.placed[0], NOTHING)
    assert (twice.struck, twice.packets) == (3, 100)
