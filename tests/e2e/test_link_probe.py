"""The probe of links on real interfaces: one that is not shaped as asked is found and named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.fidelity.probe import probe
from experiments.fidelity.verdict import assess_probe
from tests.e2e.sandboxed import in_sandbox, needs
from topo import tc
from topo.fabric import Fabric, interface
from topo.registry import parse_topology
from topo.shaping import LinkSpec, tc_lines

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs("ip", "tc")]

SPEC = LinkSpec(rate_bps=50_000_000, mtu=4160)
NOISE = 5
"""Percent of the rate by which a burst on a busy machine may be off; links here are off by 20 and 40."""


def wire(fabric: Fabric) -> None:
    """All links of the fabric, shaped, between interfaces of this namespace alone."""
    pairs = [(interface(link.a, link.a_port), interface(link.b, link.b_port)) for link in fabric.links]
    tc.batch("ip", (f"link add {a} mtu {SPEC.mtu} type veth peer name {b} mtu {SPEC.mtu}" for a, b in pairs))
    names = [name for pair in pairs for name in pair]
    tc.batch("ip", (f"link set {name} up" for name in names))
    tc.batch("tc", (line for name in names for line in tc_lines(name, SPEC)))


def shaped_otherwise(_: Path) -> dict[str, tuple[str, list[str]]]:
    """Verdict and reasons with all links as asked, with one too slow, and with one too fast."""
    fabric = parse_topology("single,hosts=3")
    wire(fabric)
    said: dict[str, tuple[str, list[str]]] = {}
    for name, changed, rate in (
        ("right", "h1-eth0", "50mbit"),
        ("slow", "s1-eth2", "40mbit"),
        ("fast", "h3-eth0", "70mbit"),
    ):
        tc.batch("tc", [f"class change dev {changed} classid 1:1 htb rate {rate} ceil {rate} burst 16k cburst 16k"])
        found = probe(fabric, SPEC, lambda _node: None)
        verdict = assess_probe(found, SPEC.rate_bps)
        said[name] = verdict.verdict, [*verdict.reasons, *sorted(found)]
    return said


def carried(reason: str, link: str) -> int:
    """Percent of its rate that a reason says ``link`` carried."""
    said = re.search(f"{link}carried ([0-9]+)% of its 50 Mbit/s", reason)
    assert said is not None, reason
    return int(said[1])


def test_a_link_that_is_shaped_wrongly_is_named(tmp_path: Path) -> None:
    said = in_sandbox(tmp_path, shaped_otherwise)
    switch = parse_topology("single,hosts=3").switches[0].name
    links = sorted(f"{a}->{b}" for host in ("h1", "h2", "h3") for a, b in ((host, switch), (switch, host)))
    assert said["right"] == ("valid", links)
    verdict, [reason, *_] = said["slow"]
    assert verdict == "overloaded"
    assert carried(reason, f"link {switch}->h2 ") == pytest.approx(80, abs=NOISE)
    verdict, [reason, *_] = said["fast"]
    assert verdict == "invalid"
    assert carried(reason, f"link h3->{switch} ") == pytest.approx(140, abs=NOISE)
    assert reason.endswith(": links are not shaped as asked")
