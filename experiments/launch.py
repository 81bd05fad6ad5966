"""From a resolved scenario to a result folder: what the machine offers, the ledger, the sandbox, the run in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.errors import EnvironmentMissing, TreecastError, UserError
from experiments.folder import Owner, ResultFolder
from experiments.ledger import Ledger
from experiments.units import format_time

if TYPE_CHECKING:
    from experiments.results import Summary
    from experiments.runner import Conduct
    from experiments.scenario import Scenario
    from experiments.ui import Progress
    from topo.platform import Missing, Platform

USERSPACE_SETTINGS = {
    "net.core.wmem_default": 134_217_728,
    "net.core.rmem_default": 16_777_216,
    "sch_htb/htb_hysteresis": 1,
}
"""What the userspace datapath needs of the kernel.

It sends through one socket for all ports: frames that wait in shaped queues count against its buffer, and at the
default size a link loses a quarter of a stream that would fit. And it takes frames singly when they come singly: with
hysteresis HTB lets a link's burst of four frames out at once and then waits, at the same rate; on two cores that
carries half as much again.
"""

ERROR = "error.txt"
"""In a result folder without a summary: the line that says why there is none."""

Finish = Callable[["Summary", Path], int]
"""What is done with the results, inside the sandbox: shown, judged; its result is the exit code."""


@dataclass(frozen=True, slots=True)
class Launched:
    """How a run ended: its exit code, and its folder, which is gone if nothing was written."""

    code: int
    folder: Path


def launch(
    scenario: Scenario,
    output: Path,
    make_progress: Callable[[], Progress],
    finish: Finish,
    conduct: Conduct | None = None,
    *,
    interactive: bool = False,
) -> Launched:
    """Run ``scenario`` in a sandbox and leave its results in a new folder below ``output``.

    ``conduct`` decides which operations are run; by default those of the scenario. If it is ``interactive``, Ctrl-C is
    its own affair.

    Raises one of ``experiments.errors`` where nothing could be started. Must be called from the main thread.
    """
    if os.geteuid() != 0:
        raise UserError("run: network namespaces need root; run it as root or with sudo")
    from experiments import runner, sandbox
    from experiments.control_socket import listen

    platform = platform_for(scenario)
    assert scenario.name is not None
    folder = ResultFolder.create(output, scenario.name, datetime.now(UTC), Owner.calling(os.environ))
    ledger = Ledger()
    try:
        with ledger.open_run() as live:
            settings = live.raise_sysctls(USERSPACE_SETTINGS) if platform.datapath == "user" else {}
            rundir = ledger.root / live.name
            listener = listen(rundir)

            def inside() -> int:
                progress = make_progress()
                try:
                    summary = runner.run(
                        scenario, folder, rundir, platform, settings, progress, listener, conduct or runner.as_asked
                    )
                except TreecastError as problem:
                    folder.write(ERROR, f"{problem}\n")
                    raise
                finally:
                    progress.close()
                return finish(summary, folder.path)

            with listener:
                return Launched(
                    sandbox.run_in_sandbox(inside, rundir, live.record_child, interactive=interactive), folder.path
                )
    finally:
        folder.hand_over()
        folder.discard_unused()


def platform_for(scenario: Scenario) -> Platform:
    """What this machine offers; :class:`EnvironmentMissing` where that does not do for ``scenario``."""
    from experiments.faults.mechanisms import check_faults
    from experiments.guests import excuses
    from topo import probe

    platform = probe.probe()
    if platform.blockers:
        raise EnvironmentMissing(cure(platform.blockers))
    if scenario.shaped_delay_ns and platform.delay is None:
        raise EnvironmentMissing(
            f"--delay {format_time(scenario.link_delay_ns)}: this kernel has no netem; leave it out, "
            "or delay packets at endpoints, like --impair delay:rx::100%"
        )
    excuses(scenario, platform)
    check_faults(scenario, platform)
    return platform


def cure(missing: Sequence[Missing]) -> str:
    """All that is missing, and how to get it, in one line."""
    lacking = ", ".join(f"{entry.what} ({entry.purpose})" for entry in missing)
    sources = list(dict.fromkeys(entry.package for entry in missing))
    packages = [source for source in sources if " " not in source]
    others = [source for source in sources if " " in source]
    cures = [f"apt-get install {' '.join(packages)}"] if packages else []
    cures += [f"get {' and '.join(others)}"] if others else []
    return f"missing: {lacking}; {', '.join(cures)}"
