"""A console in place of a scenario's operations: opens on the stage that is up, and hands back what was run on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mininet.log import lg, setLogLevel

from experiments.capture_process import Captures
from experiments.console.jobs import Jobs, QuietProgress
from experiments.console.shell import Shell
from experiments.results import Run
from experiments.runner import Stage


class Console:
    """Conducts a run by what is typed, or by ``script``. ``wrong`` counts what went wrong, once it is over."""

    def __init__(self, progress: QuietProgress, script: Path | None) -> None:
        self.wrong = 0
        self._progress = progress
        self._script = script

    def __call__(self, stage: Stage) -> list[Run]:
        """Open it; until its end. Whatever ends it, nothing goes on in the background."""
        shells: list[Shell] = []
        jobs = Jobs(stage.operations, self._progress, lambda text: _tell(shells, text))
        try:
            with _mininet_speaks(), Captures(stage.scenario, stage.net, stage.folder) as captures:
                shell = Shell(stage, jobs, captures, self._lines())
                shells.append(shell)
                shell.run_to_end()
                if self.interactive:
                    jobs.stop()
                jobs.finish()
                jobs.wait()
        finally:
            jobs.abandon()
        self.wrong = shell.wrong + jobs.failed
        return jobs.runs

    @property
    def interactive(self) -> bool:
        """Whether a person types: then leaving ends the operation under way, where a script's last one is finished."""
        return self._script is None and sys.stdin.isatty() and bool(os.environ.get("TERM"))

    def _lines(self) -> Iterable[str] | None:
        if self._script is not None:
            return self._script.read_text(encoding="utf-8").splitlines()
        return None if self.interactive else sys.stdin


@contextmanager
def _mininet_speaks() -> Iterator[None]:
    """What Mininet's commands say goes to standard output; else it is silent."""
    before = lg.ch.setStream(sys.stdout)
    setLogLevel("output")
    try:
        yield
    finally:
        setLogLevel("critical")
        if before is not None:
            lg.ch.setStream(before)


def _tell(shells: list[Shell], text: str) -> None:
    for shell in shells:
        shell.tell(text)
