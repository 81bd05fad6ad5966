"""Injected faults: as the endpoints take them from a scenario, and the list of what was hit. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from endpoints.impairments.spec import ImpairmentSpec
from experiments.scenario import Scenario

HIT_FIELDS = ("rank", "direction", "kind", "sender", "opcode", "psn", "imm", "attempt")


class HitReport(Protocol):
    """What ``endpoints.io.commands.RankResult`` says."""

    @property
    def rank(self) -> int: ...
    @property
    def hits(self) -> Sequence[tuple[Any, ...]]: ...


def impairments(scenario: Scenario) -> tuple[ImpairmentSpec, ...]:
    """The scenario's faults as the endpoints take them: the short forms act on what every host receives."""
    rank = {host.name: rank for rank, host in enumerate(scenario.by_rank)}
    short = [
        ImpairmentSpec(kind, probability=share, time_ns=scenario.delay_ns if kind == "delay" else None)
        for kind, share in (
            ("drop", scenario.loss),
            ("reorder", scenario.reorder),
            ("duplicate", scenario.duplicate),
            ("corrupt", scenario.corrupt),
            ("delay", scenario.delay),
        )
        if share > 0
    ]
    return (
        *short,
        *(
            ImpairmentSpec(
                entry.kind,
                direction=entry.direction,
                hosts=frozenset(rank[name] for name in entry.hosts),
                senders=frozenset(rank[name] for name in entry.senders),
                probability=entry.probability,
                psns=entry.psns,
                time_ns=entry.time_ns,
            )
            for entry in scenario.impairments
        ),
    )


def hit_lines(reports: Sequence[HitReport], ranks: Sequence[int]) -> str:
    """The packets that impairments struck as JSON lines, in the order of their identities, which no timing changes.

    ``ranks`` has the rank in the scenario of each that took part: hits tell of senders by these, whoever has ended.
    """
    hits = sorted(((ranks[report.rank], *hit) for report in reports for hit in report.hits), key=repr)
    return "".join(f"{json.dumps(dict(zip(HIT_FIELDS, hit, strict=True)))}\n" for hit in hits)
