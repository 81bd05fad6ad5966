"""Makes summaries that look like measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from experiments import theory
from experiments.results import Fidelity, Packets, PlatformInfo, Run, Summary
from experiments.scenario import Scenario
from topo.fabric import link_key


def summary(
    verdict: Literal["valid", "overloaded", "unknown"] = "valid",
    ratios: Sequence[float | None] = (0.9,),
    error: str = "h3 is gone",
    **fields: Any,
) -> Summary:
    """A run of a scenario with these ``fields``: an operation for each of ``ratios``, None for one that failed."""
    scenario = Scenario.of({"topology": "leafspine,leaves=2,spines=2,hosts=2", "size_bytes": "64KiB", **fields})
    runs = [
        _run(scenario, name, iteration, ratio, error)
        for iteration, ratio in enumerate(ratios, 1)
        for name in scenario.algorithms
    ]
    return Summary(
        scenario=scenario,
        platform=PlatformInfo(kernel="6.1", datapath="user"),
        runs=runs,
        fidelity=Fidelity(verdict=verdict, reasons=[] if verdict == "valid" else [f"because it is {verdict}"]),
    )


def _run(scenario: Scenario, name: str, iteration: int, ratio: float | None, error: str) -> Run:
    [kind] = [entry.kind for entry in scenario.collectives if entry.name == name]
    limit = theory.limit_seconds(kind, scenario.ranks, scenario.size_bytes, scenario.link_rate_bps)
    seconds = None if ratio is None else limit / ratio
    spent = seconds or 0.0
    carried = {
        link_key(sender, receiver): scenario.size_bytes * number
        for number, (sender, _, receiver) in enumerate(scenario.fabric.directed_links)
    }
    return Run(
        algorithm=name,
        iteration=iteration,
        ranks=scenario.ranks,
        bytes_per_rank=scenario.size_bytes,
        verified=ratio is not None,
        error=error if ratio is None else None,
        seconds=seconds,
        limit_seconds=limit,
        limit_ratio=ratio,
        phases={
            "barrier": [spent * 0.1] * scenario.ranks,
            "multicast": [spent * 0.8] * scenario.ranks,
            "recovery": [spent * 0.05] * scenario.ranks,
            "handshake": [spent * 0.05] * scenario.ranks,
        },
        packets=Packets(sent=16, received=16 * (scenario.ranks - 1)),
        link_bytes=carried,
        link_bytes_theory=carried,
        host_tx_bytes={host.name: scenario.size_bytes for host in scenario.fabric.hosts},
        cpu={"endpoints": 0.5},
    )


def leave(folder: Path, summaries: Sequence[Summary]) -> None:
    """Put each summary where a run would have left it."""
    for number, one in enumerate(summaries):
        place = folder / f"2027010{1 + number // 10}T00000{number % 10}Z-run-{number}"
        place.mkdir(parents=True)
        (place / "summary.json").write_text(one.to_json())
