"""Whether results are what their scenario expects: medians of each algorithm's operations against its bounds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from experiments.expectations import VERDICT, Expectation
from experiments.results import Run, Summary


def disappointments(summary: Summary) -> Iterator[str]:
    """A line for each expectation of the scenario that does not hold."""
    for expected in summary.scenario.expect:
        for algorithm in summary.scenario.algorithms if expected.algorithm is None else (expected.algorithm,):
            runs = [run for run in summary.runs if run.algorithm == algorithm]
            complaint = _judge(expected, runs, summary)
            if complaint is not None:
                yield f"{algorithm}: {expected.metric} is {complaint}"


def _judge(expected: Expectation, runs: list[Run], summary: Summary) -> str | None:
    if expected.metric == VERDICT:
        others = sorted({summary.verdict_of(run) for run in runs} - {expected.equals})
        return f"{', '.join(others)}, expected {expected.equals}" if others or not runs else None
    values = [value for run in runs if (value := _value(run, expected.metric)) is not None]
    return expected.complaint(median(values)) if values else "not measured"


def _value(run: Run, metric: str) -> float | None:
    name = metric.removeprefix("packets.")
    value: float | None = getattr(run.packets if name != metric else run, name)
    return value
