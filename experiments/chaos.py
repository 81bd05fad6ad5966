"""Runs under random timelines, one after the other, each judged by how it ended and by what it left."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from experiments import launch
from experiments.errors import EXIT_INTERRUPTED, EXIT_OK, ExperimentFailed
from experiments.faults.chaos import timeline, wrong_with
from experiments.faults.timed import TimedFault
from experiments.ledger import ROOT, SYSCTLS, Ledger
from experiments.results import SUMMARY, Summary
from experiments.scenario import Scenario
from experiments.ui import PlainProgress
from experiments.wording import tell_duration


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run ended: in what words, and what is wrong with that, if anything."""

    words: str
    wrong: str | None
    stopped: bool = False


def scenario_for(base: Scenario, seed: int, number: int) -> Scenario:
    """The scenario numbered ``number`` of those with ``seed``; its timeline covers the time that the limit allows."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311 - nobody guards anything with it
    span_ns = int(1.2e9 * (base.ranks - 1) * base.size_bytes * 8 / base.link_rate_bps)
    steps = timeline(dice, base.fabric, span_ns)
    faults = tuple(TimedFault.of(step).model_dump() for step in steps)
    changed = {"faults": faults, "seed": seed * 1000 + number, "name": f"chaos-{seed}-{number}", "shaped_bps": None}
    return Scenario.of(base.model_dump() | changed)


def chaos(base: Scenario, seed: int, numbers: Sequence[int], output: Path, say: Callable[[str], None]) -> int:
    """Run all of them; 130 if stopped. :class:`ExperimentFailed` at the end where any ended as it must not."""
    begun, failed = time.monotonic(), []
    for over, number in enumerate(numbers):
        scenario = scenario_for(base, seed, number)
        say(f"{over + 1}/{len(numbers)}: {'; '.join(map(str, scenario.timeline))}")
        ended = _run(scenario, output)
        if ended.stopped:
            return EXIT_INTERRUPTED
        each = (time.monotonic() - begun) / (over + 1)
        left = f"about {tell_duration(each * (len(numbers) - over - 1))} left" if over + 1 < len(numbers) else "over"
        say(f"    {'WRONG: ' + ended.wrong if ended.wrong else 'right'}: {ended.words}; {left}")
        if ended.wrong:
            failed.append((number, ended.wrong))
            say(f"    again: treecast chaos --seed {seed} --only {number}")
    if failed:
        raise ExperimentFailed(f"chaos: {len(failed)} of {len(numbers)} ended as they must not; the first: {failed[0]}")
    say(f"{len(numbers)} runs, each verified or ended with the right error; nothing is left of them")
    return EXIT_OK


def _run(scenario: Scenario, output: Path) -> Ended:
    before, begun = _traces(), time.monotonic()
    launched = launch.launch(scenario, output, lambda: PlainProgress(StringIO()), lambda _summary, _folder: EXIT_OK)
    seconds = time.monotonic() - begun
    if launched.code == EXIT_INTERRUPTED:
        return Ended("stopped", None, stopped=True)
    verified, error, wrong_bytes = _outcome(launched.folder)
    words = f"{'verified' if verified else error} ({tell_duration(seconds)})"
    left = sorted(_traces() - before)
    if left:
        return Ended(words, f"it has left {', '.join(left)}")
    wrong = wrong_with(
        scenario.timeline,
        scenario.fabric,
        verified=verified,
        error=error,
        wrong_bytes=wrong_bytes,
        seconds=seconds,
    )
    return Ended(words, wrong)


def _outcome(folder: Path) -> tuple[bool, str, int]:
    """Whether it was verified, the error where not, and its wrong bytes."""
    if (folder / SUMMARY).exists():
        summary = Summary.read(folder)
        errors = [run.error for run in summary.runs if run.error]
        return summary.verified, " ".join(errors[:1]), sum(run.wrong_bytes for run in summary.runs)
    try:
        return False, (folder / launch.ERROR).read_text(encoding="utf-8").strip(), 0
    except OSError:
        return False, "", 0


def _traces() -> set[str]:
    """What a run could leave on the machine: interfaces, and pages of the ledger but for those of runs that are on."""
    interfaces = {f"interface {path.name}" for path in Path("/sys/class/net").iterdir()}
    if not ROOT.exists():
        return interfaces
    live = Ledger(ROOT).live()
    pages = {str(path) for path in ROOT.iterdir() if path.stem not in live and not (live and path.name == SYSCTLS)}
    return interfaces | pages
