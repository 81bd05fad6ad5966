"""External programs in a run: each is started when it is first needed and stays to the end, or is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from endpoints.collectives.registry import Collective
from experiments.buffers import Buffers
from experiments.errors import EnvironmentMissing
from experiments.external.registry import External
from experiments.external.site import Measured, Place, Program, ProgramFailed, Site
from experiments.scenario import Scenario
from topo.platform import Platform

PATIENCE_S = 30.0
PATIENCE_LIMITS = 20
"""An operation may take this many times the least possible time, and :data:`PATIENCE_S` more."""


def excuses(scenario: Scenario, platform: Platform) -> dict[str, str]:
    """Why an external program of the scenario is left out, by its name.

    :class:`EnvironmentMissing` where nothing is left that could run.
    """
    reasons: dict[str, str] = {}
    for entry in scenario.collectives:
        if isinstance(entry, Collective):
            continue
        reason = entry.lacks(platform.missing)
        if scenario.injects:
            reason = "injected faults act in Treecast's endpoints and would not reach it"
        if reason is not None:
            reasons[entry.name] = reason
    if len(reasons) == len(scenario.collectives):
        raise EnvironmentMissing("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    return reasons


class Guests:
    """The external programs of one run; a context manager that ends them.

    They run at ``places``, their files are below ``rundir``, and what they say goes to files in ``logs``. ``skipped``
    says of each that was left out why; it begins with ``excused``.
    """

    def __init__(
        self,
        places: Sequence[Place],
        *,
        rate_bps: int,
        mtu: int,
        rundir: Path,
        logs: Path,
        look: Callable[[], None],
        excused: dict[str, str],
    ) -> None:
        self.skipped = dict(excused)
        self._places = tuple(places)
        self._rate_bps = rate_bps
        self._mtu = mtu
        self._rundir = rundir
        self._logs = logs
        self._look = look
        self._running: dict[str, tuple[Program, ExitStack]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self._end(name)

    def ready(self, entry: External) -> bool:
        """Whether it runs; it is started if need be. If it cannot be, ``skipped`` says why."""
        if entry.name in self.skipped:
            return False
        if entry.name not in self._running:
            folder = self._rundir / entry.name
            folder.mkdir()
            log = self._logs / f"{entry.name}.log"
            site = Site(self._places, self._rate_bps, self._mtu, folder, log, self._look)
            with ExitStack() as stack:
                try:
                    program = stack.enter_context(entry.start(site))
                except (ProgramFailed, OSError) as problem:
                    self.skipped[entry.name] = str(problem)
                    return False
                self._running[entry.name] = program, stack.pop_all()
        return True

    def run(self, entry: External, buffers: Buffers, limit_seconds: float) -> tuple[Measured | None, str | None]:
        """One operation of a program that is ready, and what went wrong; one that fails is ended and left out."""
        program, _ = self._running[entry.name]
        ranks = range(len(self._places))
        data, received = [buffers.data(rank) for rank in ranks], [buffers.received(rank) for rank in ranks]
        try:
            return program.run(data, received, PATIENCE_S + PATIENCE_LIMITS * limit_seconds), None
        except (ProgramFailed, OSError) as problem:
            self._end(entry.name)
            self.skipped[entry.name] = f"it has failed: {problem}"
            return None, str(problem)

    def _end(self, name: str) -> None:
        self._running.pop(name)[1].close()
