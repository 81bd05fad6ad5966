"""Runs under random timelines, one after the other, each judged by how it ended and by what it left."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from experiments import launch
from experiments.chaos.traces import adopt_orphans, traces
from experiments.chaos.trials import CHAOS, Trial, Trials, closing, outcome
from experiments.errors import EXIT_INTERRUPTED, EXIT_OK, ExperimentFailed
from experiments.faults.blame import Defect, End, Finding, find
from experiments.faults.chaos import Ground, killing, timeline, undrawn
from experiments.faults.fault import Fault
from experiments.faults.link_faults import refusal
from experiments.faults.timed import TimedFault
from experiments.folder import ResultFolder
from experiments.link_spec import link_spec
from experiments.muster import END_S
from experiments.patience import Patience
from experiments.ranks import AFTER_FAILURE_S, ANSWER_S
from experiments.results import SUMMARY, Run, Summary
from experiments.runner import Stage, as_asked
from experiments.scenario import Scenario
from experiments.ui import PlainProgress
from experiments.wording import tell_duration
from topo.impairments.port import features_of
from topo.platform import Platform

TOOK = "operation-ns.txt"
"""In a run's folder: nanoseconds from the start of its operation until the last rank's word, whatever that was."""


@dataclass(frozen=True, slots=True)
class Chaos:
    """What is drawn: scenarios like ``base`` under timelines that follow from ``seed``, without kinds ``undrawn``.

    ``kills``: a single kill each, instead of mixed faults.
    """

    base: Scenario
    seed: int
    undrawn: dict[str, str]
    kills: bool = False

    @classmethod
    def on(cls, base: Scenario, seed: int, platform: Platform, *, kills: bool = False) -> Chaos:
        """With the kinds of faults that this machine can carry out."""
        if kills:
            return cls(base, seed, {}, kills=True)
        spec, features = link_spec(base), features_of(platform.features.items())
        ground = _ground(base)
        return cls(base, seed, undrawn(ground, lambda fault: refusal(fault, base.fabric, spec, features)))

    def scenario(self, number: int) -> Scenario:
        """The scenario of that number, alone or among others; its faults come while the limit's time lasts."""
        base = self.base
        dice = random.Random(f"{self.seed}/{number}")  # noqa: S311 - nobody guards anything with it
        span_ns = int(1.2e9 * (base.ranks - 1) * base.size_bytes * 8 / base.link_rate_bps)
        if self.kills:
            steps = killing(dice, _ground(base), span_ns)
        else:
            steps = timeline(dice, _ground(base), span_ns, list(self.undrawn))
        faults = tuple(TimedFault.of(step).model_dump() for step in steps)
        name = f"chaos-{self.seed}-{number}"
        changed = {"faults": faults, "seed": self.seed * 1000 + number, "name": name, "shaped_bps": None}
        return Scenario.of(base.model_dump() | changed)


def _ground(base: Scenario) -> Ground:
    return Ground(base.fabric, base.link_rate_bps, base.offload == "nic")


def chaos(
    drawn: Chaos,
    numbers: Sequence[int],
    folder: ResultFolder,
    again: Callable[[int], str],
    say: Callable[[str], None],
) -> tuple[int, Trials]:
    """Run all of ``numbers``, and keep what was found in ``folder`` after each; exit code 130 if stopped.

    ``again`` is the command that repeats one alone.
    """
    base = drawn.base
    found = Trials(
        seed=drawn.seed,
        topology=base.topology,
        size_bytes=base.size_bytes,
        link_rate_bps=base.link_rate_bps,
        undrawn=drawn.undrawn,
    )
    adopt_orphans()
    begun = time.monotonic()
    for over, number in enumerate(numbers, 1):
        scenario = drawn.scenario(number)
        say(f"{over}/{len(numbers)}: {'; '.join(map(str, scenario.timeline))}")
        trial = _trial(scenario, number, folder, again(number))
        if trial is None:
            return EXIT_INTERRUPTED, found
        found = found.model_copy(update={"trials": [*found.trials, trial]})
        folder.write(CHAOS, found.to_json())
        each = (time.monotonic() - begun) / over
        left = f"about {tell_duration(each * (len(numbers) - over))} left" if over < len(numbers) else "over"
        say(f"    {outcome(trial)}, {trial.seconds:.0f} s: {trial.finding or 'right'}; {left}")
        if trial.defect is not None:
            say(f"    again: {trial.again}")
    folder.publish()
    return EXIT_OK, found


def judge(found: Trials) -> None:
    """:class:`ExperimentFailed` where a run ended as it must not, with the first of each class of defect."""
    firsts = [f"{defect}: {trial.again}" for defect, trial in found.first_of_each_class.items()]
    if firsts:
        raise ExperimentFailed(f"chaos: {closing(found)}; {'; '.join(firsts)}")


def _trial(scenario: Scenario, number: int, folder: ResultFolder, again: str) -> Trial | None:
    """One run, judged; None if it was stopped."""
    before, begun = traces(), time.monotonic()
    launched = launch.launch(
        scenario,
        folder.subfolder("runs"),
        lambda: PlainProgress(StringIO()),
        lambda _summary, _folder: EXIT_OK,
        _timed,
    )
    seconds = time.monotonic() - begun
    if launched.code == EXIT_INTERRUPTED:
        return None
    end = _end(launched.folder)
    left = sorted(traces() - before)
    finding = find(scenario.timeline, scenario.fabric, bound(scenario), end)
    if finding is None and left:
        finding = Finding(Defect.LEFT_BEHIND, ", ".join(left))
    return Trial(
        number=number,
        faults=[str(step) for step in scenario.timeline],
        kinds=[f"{step.what.target} {step.what.kind}" for step in scenario.timeline if isinstance(step.what, Fault)],
        verified=end.verified,
        error=end.error,
        blamed=end.names(scenario.fabric),
        defect=finding.defect.value if finding else None,
        finding=finding.words if finding else "",
        operation_seconds=round(end.took / 1e9, 3),
        seconds=round(seconds, 3),
        folder=str(launched.folder.relative_to(folder.path)) if launched.folder.exists() else None,
        again=again,
    )


def bound(scenario: Scenario) -> Patience:
    """The endpoints' patience, and the time in which those whom a failure left behind are told to end, and ended."""
    patience = Patience.of(scenario)
    rest_s = 2 * AFTER_FAILURE_S + ANSWER_S + scenario.ranks * END_S
    return replace(patience, operation=patience.operation + patience.peer + int(1e9 * rest_s))


def _timed(stage: Stage) -> Iterator[Run]:
    """The operations as asked; what they took is written down even where no summary will be."""
    try:
        yield from as_asked(stage)
    finally:
        stage.folder.write(TOOK, f"{stage.director.took_ns}\n")


def _end(folder: Path) -> End:
    """How the run whose results are in ``folder`` ended."""
    took = int(_text(folder / TOOK) or 0)
    if not (folder / SUMMARY).exists():
        return End(verified=False, error=_text(folder / launch.ERROR), wrong_bytes=0, took=took)
    summary = Summary.read(folder)
    errors = [run.error for run in summary.runs if run.error]
    return End(
        verified=summary.verified,
        error=" ".join(errors[:1]),
        wrong_bytes=sum(run.wrong_bytes for run in summary.runs),
        took=took,
        missing=tuple(host for run in summary.runs for host in run.missing),
        refused={row.fault: row.remark for row in summary.faults if row.outcome == "refused"},
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
