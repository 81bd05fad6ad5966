"""The tables that every report begins with: what was measured, how far to believe it, and each operation's figures."""

from __future__ import annotations

from collections import Counter

from experiments import theory
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Table, Value
from experiments.report.groups import alike
from experiments.stats import estimate
from experiments.wording import tell_value

SCENARIO_FIELDS = ("topology", "rate_bps", "scale", "mtu", "loss", "reorder", "trees", "chains", "seed")


def settings(evidence: Evidence) -> Table:
    """A row for each setting: medians over its operations."""
    rows: list[tuple[Value, ...]] = []
    for title, operations in alike(evidence.operations, evidence.varying).items():
        counting = [operation for operation in operations if operation.counts]
        verdicts = sorted({operation.verdict for operation in operations})
        failed = len(operations) - len(counting)
        if not counting:
            rows.append((title, len(operations), failed, None, None, None, None, ", ".join(verdicts)))
            continue
        seconds = estimate([operation.seconds for operation in counting])
        ratio = estimate([operation.limit_ratio for operation in counting])
        rows.append(
            (
                title,
                len(operations),
                failed,
                seconds.median,
                seconds.low,
                seconds.high,
                ratio.median,
                ", ".join(verdicts),
            )
        )
    columns = ("setting", "operations", "failed", "median time (s)", "low", "high", "part of the limit", "fidelity")
    return Table(columns, rows)


def fidelity(evidence: Evidence) -> Table:
    """A row for each run that was not simply valid, with the reasons."""
    rows: list[tuple[Value, ...]] = [
        (folder.name, summary.fidelity.verdict, "; ".join(summary.fidelity.reasons))
        for folder, summary in evidence.summaries.items()
        if summary.fidelity.verdict != "valid"
    ]
    return Table(("run", "verdict", "reasons"), rows)


def skipped(evidence: Evidence) -> Table:
    """External programs that were asked for and are not there."""
    rows: list[tuple[Value, ...]] = [
        (entry.algorithm, entry.reason, count)
        for entry, count in Counter(e for summary in evidence.summaries.values() for e in summary.skipped).items()
    ]
    return Table(("algorithm", "reason", "runs"), rows)


def failures(evidence: Evidence) -> Table:
    """Operations and points that failed, whose times are in no figure."""
    rows: list[tuple[Value, ...]] = [
        (operation.folder.name, operation.run.algorithm, operation.run.iteration, operation.run.error or "wrong bytes")
        for operation in evidence.operations
        if not operation.counts
    ]
    rows += [(lost.what, None, None, lost.error) for lost in evidence.lost]
    return Table(("run", "algorithm", "iteration", "error"), rows)


def shared(evidence: Evidence) -> list[tuple[str, str]]:
    """What all operations have in common, in words."""
    first = evidence.operations[0]
    fields = [name for name in SCENARIO_FIELDS if name in first.setting and name not in evidence.varying]
    return [(name.removesuffix("_bps").replace("_", " "), tell_value(name, first.setting[name])) for name in fields]


def operations(evidence: Evidence) -> Table:
    """A row for each operation."""
    columns = (
        "run", "algorithm", "iteration", "verified", "error", "fidelity", *SCENARIO_FIELDS, "ranks", "bytes per rank",
        "time (s)", "time at the emulated rate (s)", "limit (s)", "part of the limit", "algbw (bytes/s)",
        "busbw (bytes/s)", "busbw at the emulated rate (bytes/s)", "chunks recovered", "chunks lost",
        "drops injected", "bytes on links", "bytes on links, theory", "most bytes sent by a host", "CPU (s)",
    )  # fmt: skip
    return Table(columns, [_row(operation) for operation in evidence.operations])


def _row(operation: Operation) -> tuple[Value, ...]:
    run, scenario = operation.run, operation.scenario
    seconds = run.seconds or 0.0
    busbw = theory.busbw(operation.kind, run.ranks, run.bytes_per_rank, seconds)
    return (
        operation.folder.name, run.algorithm, run.iteration, "yes" if run.verified else "no", run.error,
        operation.verdict, *(_plain(getattr(scenario, name, None)) for name in SCENARIO_FIELDS), run.ranks,
        run.bytes_per_rank, run.seconds, seconds / scenario.scale if run.seconds else None, run.limit_seconds,
        run.limit_ratio, theory.algbw(operation.kind, run.ranks, run.bytes_per_rank, seconds), busbw,
        busbw * scenario.scale,
        run.packets.recovered, run.packets.lost, run.packets.dropped_injected, sum(run.link_bytes.values()),
        sum(run.link_bytes_theory.values()) or None, max(run.host_tx_bytes.values(), default=None),
        sum(run.cpu.values()),
    )  # fmt: skip


def _plain(value: object) -> Value:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
