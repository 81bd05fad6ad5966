"""What ``treecast chaos`` found, as its file ``chaos.json`` has it, and as a table. One :class:`Trial` is one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict
from rich import box
from rich.table import Table

CHAOS = "chaos.json"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Trial(_Value):
    """One run under random faults.

    ``faults`` has its timeline in the words of a scenario, ``kinds`` what each of them is. ``error`` is what it said
    where it was not ``verified``; ``defect`` is the class of what is wrong with how it ended, None where that is right,
    and ``finding`` what was seen of it. ``operation_seconds`` are the collective's, ``seconds`` those of all, build
    included. ``folder`` has its results, beside the file; ``again`` is the command that repeats it alone.
    """

    number: int
    faults: list[str]
    kinds: list[str]
    verified: bool
    error: str = ""
    blamed: list[str] = []
    defect: str | None = None
    finding: str = ""
    operation_seconds: float
    seconds: float
    folder: str | None = None
    again: str


class Trials(_Value):
    """All runs of one seed so far. ``undrawn`` has the kinds of faults that this machine cannot do, with the reason."""

    version: int = 1
    seed: int
    topology: str
    size_bytes: int
    link_rate_bps: int
    undrawn: dict[str, str]
    trials: list[Trial] = []

    @property
    def first_of_each_class(self) -> dict[str, Trial]:
        """The first run with each class of defect."""
        found: dict[str, Trial] = {}
        for trial in self.trials:
            if trial.defect is not None:
                found.setdefault(trial.defect, trial)
        return found

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"


def outcome(trial: Trial) -> str:
    """How a run ended, in two or three words."""
    if trial.verified:
        return "verified"
    return f"error: {', '.join(trial.blamed)}" if trial.blamed else "error"


def trials_table(trials: Sequence[Trial]) -> Table:
    """A line for each run: what was done to it, how it ended, and whether that is right."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("run", justify="right", no_wrap=True)
    table.add_column("faults", max_width=60)
    table.add_column("outcome", no_wrap=True)
    for name in ("operation\n(s)", "in all\n(s)"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for trial in trials:
        times = (f"{trial.operation_seconds:.2f}", f"{trial.seconds:.1f}")
        table.add_row(
            str(trial.number),
            counted(trial.kinds),
            outcome(trial),
            *times,
            "right" if trial.defect is None else f"WRONG: {trial.defect}",
        )
    return table


def counted(kinds: Sequence[str]) -> str:
    """Names, each once, with how often: ``host stop x2, link down``."""
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in Counter(kinds).items())


def closing(trials: Trials) -> str:
    """All runs in a sentence."""
    runs = trials.trials
    verified = sum(trial.verified and trial.defect is None for trial in runs)
    wrong = sum(trial.defect is not None for trial in runs)
    right = len(runs) - verified - wrong
    words = f"{len(runs)} runs with seed {trials.seed}: {verified} verified, {right} ended with the right error"
    return f"{words}, {wrong} ended WRONG" if wrong else f"{words}; no byte was wrong, and nothing is left of them"
