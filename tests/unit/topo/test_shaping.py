"""Links to tc lines, and the kernel's own report back. The reports were taken from Linux 6.18 with iproute2 6.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from topo.shaping import LinkSpec, ShapingError, differences, quantity, tc_lines

SPEC = LinkSpec(rate_bps=100_000_000, mtu=4200)
QDISCS = json.loads(
    '[{"kind":"htb","handle":"1:","root":true,"refcnt":3,"options":{"r2q":10,"default":"0x1","direct_packets_stat":0,'
    '"direct_qlen":1000}},{"kind":"pfifo","handle":"10:","parent":"1:1","options":{"limit":1000}}]'
)
CLASSES = (
    "class htb 1:1 root leaf 10: prio 0 quantum 4214 rate 100Mbit ceil 100Mbit linklayer ethernet burst 16837b/1 mpu 0b"
    " cburst 16837b/1 mpu 0b level 0 \n"
)


def report(**leaf: Any) -> list[dict[str, Any]]:
    return [QDISCS[0], {**QDISCS[1], **leaf}]


def test_a_link_is_an_htb_class_over_its_queue() -> None:
    assert tc_lines("e00-eth3", SPEC) == [
        "qdisc add dev e00-eth3 root handle 1: htb default 1",
        (
            "class add dev e00-eth3 parent 1: classid 1:1 htb rate 100000000bit ceil 100000000bit"
            " burst 16856b cburst 16856b quantum 4214"
        ),
        "qdisc add dev e00-eth3 parent 1:1 handle 10: pfifo limit 1000",
    ]


def test_a_delay_is_netem_whose_limit_holds_what_is_on_its_way() -> None:
    spec = LinkSpec(rate_bps=100_000_000, delay_us=5_000, queue_packets=100, mtu=1486)
    on_the_way = 42  # 62,500 bytes in 5 ms are 41.7 frames of 1,500
    assert (
        tc_lines("x", spec)[2] == f"qdisc add dev x parent 1:1 handle 10: netem delay 5000us limit {100 + on_the_way}"
    )


@pytest.mark.parametrize(
    ("rate_bps", "burst"),
    [
        (1_000, 7_500),  # 60 s at the rate, not four frames: HTB's clock cannot hold more
        (100_000_000, 4 * 4_166),
        (10_000_000_000, 125_000),  # 100 us
    ],
)
def test_burst_is_four_frames_within_what_the_timers_need_and_hold(rate_bps: int, burst: int) -> None:
    assert LinkSpec(rate_bps, mtu=4152).burst_bytes == burst


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate_bps", 0),
        ("rate_bps", -1),
        ("rate_bps", 999),
        ("rate_bps", 10_000_000_001),
        ("delay_us", -1),
        ("queue_packets", 0),
        ("mtu", 100),
    ],
)
def test_what_cannot_be_shaped_is_refused_with_its_bounds(field: str, value: int) -> None:
    with pytest.raises(ShapingError, match=rf"of {value} .*must be from"):
        LinkSpec(**{"rate_bps": 1_000_000, field: value})


def test_the_kernels_own_report_of_what_was_asked_shows_no_difference() -> None:
    assert differences("va", SPEC, QDISCS, CLASSES) == []


def test_rounding_by_tc_is_no_difference() -> None:
    """56,234,567 bit/s and a 16,856 byte burst as tc 6.1 prints them; 1,999 bit/s are 249 whole bytes/s."""
    odd = CLASSES.replace("100Mbit", "56234Kbit").replace("16837b", "16842b")
    assert differences("va", LinkSpec(56_234_567, mtu=4200), QDISCS, odd) == []
    slow = CLASSES.replace("100Mbit", "1992bit").replace("16837b", "14991b")
    assert differences("va", LinkSpec(1_999, mtu=4200), QDISCS, slow) == []


@pytest.mark.parametrize(
    ("qdiscs", "classes", "complaint"),
    [
        ([], "", "qdiscs are none, asked for htb 1:, pfifo 10:"),
        ([{"kind": "noqueue", "handle": "0:", "options": {}}], "", "qdiscs are noqueue 0:"),
        ([*QDISCS, {"kind": "ingress", "handle": "ffff:"}], CLASSES, "ingress ffff:"),
        (report(kind="netem"), CLASSES, "netem 10:"),
        (report(options={"limit": 999}), CLASSES, "queue limit is 999, asked for 1000"),
        ([{**QDISCS[0], "options": {"default": "0x2"}}, QDISCS[1]], CLASSES, "unclassified packets to 0x2"),
        (QDISCS, CLASSES.replace("rate 100Mbit", "rate 99Mbit"), "rate is 99000000, asked for 100000000"),
        (QDISCS, CLASSES.replace("ceil 100Mbit", "ceil 1Gbit"), "ceil is 1000000000"),
        (QDISCS, CLASSES.replace(" burst 16837b", " burst 1600b"), " burst is 1600, asked for 16856"),
        (QDISCS, CLASSES.replace("cburst 16837b", "cburst 15Kb"), "cburst is 15360"),
        (QDISCS, CLASSES.replace("quantum 4214", "quantum 1500"), "quantum is 1500, asked for 4214"),
        (QDISCS, "", "has no class htb 1:1"),
        (QDISCS, CLASSES + CLASSES.replace("1:1", "1:7"), "has further classes: class htb 1:7"),
    ],
)
def test_every_departure_is_reported(qdiscs: list[dict[str, Any]], classes: str, complaint: str) -> None:
    found = differences("va", SPEC, qdiscs, classes)
    assert any(complaint in line for line in found), found
    assert all(line.startswith("va: ") for line in found)


def test_a_delay_is_compared_too() -> None:
    spec = LinkSpec(100_000_000, delay_us=5_000, mtu=4200, queue_packets=100)
    options: dict[str, Any] = {"limit": spec.limit_packets, "delay": {"delay": 0.005, "jitter": 0, "correlation": 0}}
    assert differences("va", spec, report(kind="netem", options=options), CLASSES) == []
    options["delay"]["delay"] = 0.004
    assert differences("va", spec, report(kind="netem", options=options), CLASSES) == [
        "va: delay is 4000 us, asked for 5000"
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [("8bit", 8), ("56234Kbit", 56_234_000), ("1Gbit", 10**9), ("16837b", 16_837), ("15Kb", 15_360), ("4214", 4_214)],
)
def test_quantities_as_tc_prints_them(text: str, value: int) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "fast", "12Xbit"])
def test_a_quantity_nobody_knows_is_an_error(text: str) -> None:
    with pytest.raises(ShapingError):
        quantity(text)
