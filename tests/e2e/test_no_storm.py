"""Links fail and come back while collectives run: no packet comes to a switch twice, as captures of all links say.

What happens in between is where storms would begin: some switches have the new rules already and others the old ones.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from experiments.analysis.context import Context
from experiments.analysis.trace import read_trace
from experiments.analysis.visits import visits
from tests.e2e.command import NEEDS, run
from tests.e2e.sandboxed import needs
from topo.registry import parse_topology

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slow, needs(*NEEDS)]

FABRIC = parse_topology("fattree,k=4")
TRUNKS = [f"{link.a}-{link.b}" for link in FABRIC.links if link.a in FABRIC.switch]
OPERATIONS, FAILURES = 2, 6
SEED = 4


def timeline(seed: int) -> list[dict[str, object]]:
    """In each operation some links fail within the time that it takes without, each for a while."""
    dice = random.Random(seed)
    return [
        {
            "at": f"{dice.randint(20, 250)}ms",
            "operation": operation,
            "fault": f"link {link} down for {dice.randint(50, 500)}ms",
        }
        for operation in range(1, OPERATIONS + 1)
        for link in dice.sample(TRUNKS, FAILURES)
    ]


def test_no_packet_comes_to_a_switch_twice_whatever_links_fail_under_it(tmp_path: Path) -> None:
    scenario = {
        "topology": "fattree,k=4",
        "rate_bps": "20M",
        "size_bytes": "64KiB",
        "warmup": 0,
        "iterations": OPERATIONS,
        "faults": timeline(SEED),
        "capture": [*FABRIC.host, *TRUNKS],
    }
    (tmp_path / "failing.yaml").write_text(yaml.safe_dump(scenario))
    done = run(tmp_path, str(tmp_path / "failing.yaml"))
    assert done.code == 0, f"{done.out}{done.err}"
    summary = done.summary
    assert summary.verified
    assert sum(row.applied_seconds is not None for row in summary.faults) > FAILURES, "in both they failed"
    trace = read_trace(sorted((done.latest / "captures").iterdir()), Context(summary.scenario))
    assert (len(trace.points), trace.warnings) == (len(FABRIC.links), [])
    found = visits(trace, FABRIC)
    assert found.returns == (), f"seed {SEED}"
    assert found.unknown == 0
    assert found.packets > OPERATIONS * len(FABRIC.hosts), "there was something to follow"
    strangers = [point.name for point in trace.points if point.host is None and point.packets > point.roce]
    assert strangers == [], "nothing but RoCEv2 is forwarded"
