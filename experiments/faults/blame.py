"""Which hosts a timeline of faults can be the reason of an error about, and whether a run ended as it may. Pure.

A run must end verified, with one excuse: a host was taken away from the others, for good or for longer than endpoints
wait for each other. Who is cut off follows from the graph: what is down is not in it, what is dropped is an edge less,
and whoever is not in its largest part whose hosts all reach each other is cut off. An error is right if it blames such
hosts and nobody else, after the time that it takes to see it, and before everybody's patience is over. That a failure
passes by itself (links that are led around, daemons that are started again) is the product's promise, and no excuse.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

import networkx as nx

from experiments.faults.fault import Fault
from experiments.faults.quantities import directions
from experiments.faults.timeline import Clear, Step
from experiments.patience import Patience
from topo.fabric import Fabric


class Defect(Enum):
    """What a run must not do, worst first."""

    WRONG_BYTES = "wrong bytes"
    TOO_LATE = "not over in time"
    NO_EXCUSE = "failed without an excuse"
    WRONG_NAME = "an error that does not name who is cut off"
    NOT_PUT_IN = "a fault that was not put in"
    LEFT_BEHIND = "something left behind"


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect, and what was seen of it in a line."""

    defect: Defect
    words: str


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended, after ``took`` nanoseconds of its operation.

    ``error`` is what it said where it was not verified; ``missing`` are the hosts that it gave up as ended;
    ``refused`` has the faults that were not put in, by their words, with the reason.
    """

    verified: bool
    error: str
    wrong_bytes: int
    took: int
    missing: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def names(self, fabric: Fabric) -> list[str]:
        """The hosts that it blames."""
        return list(self.missing) or blamed(self.error, fabric)


@dataclass(frozen=True, slots=True)
class Span:
    """A fault and the time in which it is in force, in nanoseconds after the operation's start."""

    fault: Fault
    begin: int
    end: int


def spans(steps: Sequence[Step], until: int) -> list[Span]:
    """The faults that come before ``until``, each to its own end, its clearing, or until then."""
    cleared: dict[int, int] = {}
    for step in steps:
        if isinstance(step.what, Clear):
            cleared.setdefault(step.what.number, step.when.at_ns)
    found = []
    faults = [(step.when.at_ns, step.what) for step in steps if isinstance(step.what, Fault)]
    for number, (begin, fault) in enumerate(faults, 1):
        ends = [until, cleared.get(number, until)]
        if fault.duration_ns is not None:
            ends.append(begin + fault.duration_ns)
        if begin <= until:
            found.append(Span(fault, begin, max(begin, min(ends))))
    return found


def cut_off(fabric: Fabric, faults: Collection[Fault]) -> frozenset[str]:
    """The hosts that, with these faults in force, cannot both send to and receive from the greater part of the others.

    Where parts are equally great nobody can say which is cut off, and all their hosts are.
    """
    graph: nx.DiGraph[str] = fabric.graph.to_directed()
    for fault in faults:
        _take_away(graph, fault, fabric)
    parts = [part & fabric.host.keys() for part in nx.strongly_connected_components(graph)]
    greatest = max(map(len, parts), default=0)
    whole = [part for part in parts if len(part) == greatest]
    joined = whole[0] if len(whole) == 1 else frozenset()
    return frozenset(fabric.host.keys() - joined)


def _take_away(graph: nx.DiGraph[str], fault: Fault, fabric: Fabric) -> None:
    """What a fault leaves of the graph."""
    total = fault.get("probability") == 1
    match fault.target, fault.kind:
        case "link", "down" | "blackhole" | "loss" if fault.kind != "loss" or total:
            graph.remove_edges_from(directions(fault.place, fabric))
        case ("switch", "down") | ("host", "stop" | "kill"):
            graph.remove_edges_from([*graph.in_edges(fault.place), *graph.out_edges(fault.place)])
        case "host", "rx drop" if total and not fault.get("from"):
            graph.remove_edges_from(list(graph.in_edges(fault.place)))
        case "host", "tx drop" if total:
            graph.remove_edges_from(list(graph.out_edges(fault.place)))


def suspects(steps: Sequence[Step], fabric: Fabric, outage: int, until: int) -> dict[str, str]:
    """The hosts that an error at ``until`` may blame, each with the fault that is the reason.

    Those whose endpoint was killed, at once; those that were cut off for ``outage`` ns without a break.
    """
    timeline = spans(steps, until)
    found = {span.fault.place: str(span.fault) for span in timeline if _kills(span.fault)}
    streak: dict[str, int] = defaultdict(int)
    moments = sorted({moment for span in timeline for moment in (span.begin, span.end)})
    for begin, end in pairwise(moments):
        active = [span.fault for span in timeline if span.begin <= begin and end <= span.end]
        out = cut_off(fabric, active)
        for host in fabric.host:
            streak[host] = streak[host] + end - begin if host in out else 0
            if streak[host] >= outage:
                found.setdefault(host, " and ".join(str(fault) for fault in active if _severs(fabric, fault)))
    return found


def _kills(fault: Fault) -> bool:
    return (fault.target, fault.kind) == ("host", "kill")


def _severs(fabric: Fabric, fault: Fault) -> bool:
    """Whether a fault takes anything out of the graph."""
    graph: nx.DiGraph[str] = fabric.graph.to_directed()
    _take_away(graph, fault, fabric)
    return len(graph.edges) < 2 * len(fabric.links)


def blamed(error: str, fabric: Fabric) -> list[str]:
    """The hosts that an error blames: those in its first clause, such as ``h3 (rank 2) seems to be at fault``.

    What comes behind a semicolon is who said it, and what it saw.
    """
    return [word for word in re.findall(r"\w+", error.partition(";")[0]) if word in fabric.host]


def find(steps: Sequence[Step], fabric: Fabric, patience: Patience, end: End) -> Finding | None:
    """What is wrong with how a run under ``steps`` ended; None if it ended as it may."""
    if end.wrong_bytes:
        return Finding(Defect.WRONG_BYTES, f"{end.wrong_bytes} bytes are wrong")
    if end.took > patience.operation:
        return Finding(Defect.TOO_LATE, f"it took {_s(end.took)}, nobody waits longer than {_s(patience.operation)}")
    if end.verified:
        return _refusal(steps, end.refused)
    excused = suspects(steps, fabric, patience.outage, end.took)
    said = end.error or "without a word"
    if not excused:
        return Finding(Defect.NO_EXCUSE, f"nobody was cut off for {_s(patience.outage)}, and yet: {said}")
    names = end.names(fabric)
    if not names or not excused.keys() >= set(names):
        right = " or ".join(f"{host} ({fault})" for host, fault in excused.items())
        return Finding(Defect.WRONG_NAME, f"{right} would be right, not: {said}")
    return _refusal(steps, end.refused)


def _refusal(steps: Sequence[Step], refused: Mapping[str, str]) -> Finding | None:
    """The first fault that was not put in, unless the endpoint that it concerned was stopped or dead."""
    silent = {step.what.place for step in steps if isinstance(step.what, Fault) and step.what.kind in {"stop", "kill"}}
    for words, reason in refused.items():
        if not silent.intersection(words.split()):
            return Finding(Defect.NOT_PUT_IN, f"{words}: {reason}")
    return None


def _s(ns: int) -> str:
    return f"{ns / 1e9:.3g} s"
