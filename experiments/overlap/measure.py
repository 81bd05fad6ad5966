"""The measurement itself, on a fabric that is up and whose hosts have NICs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from endpoints.collectives.registry import Collective
from endpoints.io.commands import Call
from experiments import judge
from experiments.data import Data
from experiments.errors import EnvironmentMissing, ExperimentFailed
from experiments.overlap import application
from experiments.overlap.application import Took
from experiments.overlap.findings import FILE, Communication, Findings, OnHosts, Round, cpus_needed
from experiments.ranks import LEAD_PER_RANK_S, LEAD_S
from experiments.results import Run
from experiments.runner import Stage
from topo.cgroups.forms import group
from topo.cgroups.process_times import ProcessTimes

TRIAL_PRODUCTS = 100
"""From which the time of one is taken, a tenth of a second or so."""


class Overlap:
    """What is asked for: ``computing`` hosts, ``rounds``, and the kernel's time, as a part of the collective's limit.

    ``on_hosts`` is the collective without NICs, to compare with. :meth:`conduct` is for ``launch``; what it has found
    is in ``found`` then.
    """

    def __init__(self, computing: int, rounds: int, part: float, on_hosts: OnHosts | None) -> None:
        self._computing, self._rounds, self._part = computing, rounds, part
        self._on_hosts = on_hosts
        self.found: Findings | None = None

    def conduct(self, stage: Stage) -> Iterator[Run]:
        """The scenario's own operations, then rounds of the kernel alone and beside the same collective."""
        runs = list(stage.operations.operations())
        yield from runs
        if not all(run.verified for run in runs):
            return
        stage.progress.phase("kernel", None)
        bench = _Bench(stage, self._computing)
        idle = bench.idle()
        bench.settle(idle.load)
        products = bench.products(self._part)
        rounds = []
        for number in range(1, self._rounds + 1):
            stage.progress.phase(f"overlap {number}/{self._rounds}", None)
            rounds.append(bench.round(products))
        scenario = stage.scenario
        self.found = Findings(
            topology=scenario.topology,
            ranks=scenario.ranks,
            bytes_per_rank=scenario.size_bytes,
            link_rate_bps=scenario.link_rate_bps,
            workers=scenario.workers,
            accounting=stage.groups.mechanism,
            cpus=len(bench.cpus),
            pinned=bench.pinned,
            idle=idle,
            products=products,
            rounds=rounds,
            on_hosts=self._on_hosts,
        )
        stage.folder.write(FILE, self.found.to_json())


class _Bench:
    """Kernels run on the last CPUs, one on each."""

    def __init__(self, stage: Stage, computing: int) -> None:
        self._stage = stage
        scenario = stage.scenario
        [algorithm] = scenario.collectives
        assert isinstance(algorithm, Collective)
        self._algorithm = algorithm
        self._hosts = [host.name for host in scenario.by_rank]
        self._data = Data(scenario.size_bytes, scenario.seed)
        self.cpus = sorted(os.sched_getaffinity(0))
        backwards = self.cpus[::-1]
        self.pinned = {host: backwards[i % len(backwards)] for i, host in enumerate(self._hosts[:computing])}

    def idle(self) -> Communication:
        """The collective while no host computes."""
        return self._communicate(0)[1]

    def settle(self, load: float) -> None:
        """Have each kernel on its CPU, and all else on the others, where these are enough for ``load`` CPUs.

        So it is with a real NIC, and a real network, which take none of the host's cores.
        """
        if len(self.cpus) >= cpus_needed(len(self.pinned), load):
            others = set(self.cpus) - set(self.pinned.values())
            for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(int(task.name), others)
            with suppress(EnvironmentMissing):  # they are there already
                self._stage.groups.pin_nics(others)
        self._on_computing(application.pin, self.pinned)

    def products(self, part: float) -> int:
        """How many products take the ``part`` of the time that the collective takes at least."""
        scenario = self._stage.scenario
        limit_ns = 1e9 * (scenario.ranks - 1) * scenario.size_bytes * 8 / scenario.link_rate_bps
        for _ in range(2):  # the first has the library get ready
            trial = self._on_computing(application.alone, dict.fromkeys(self.pinned, TRIAL_PRODUCTS))
        each_ns = max(took.wall_ns for took in trial.values()) / TRIAL_PRODUCTS
        return max(1, round(part * limit_ns / each_ns))

    def round(self, products: int) -> Round:
        """The kernel alone, then beside the collective; :class:`ExperimentFailed` where that goes wrong."""
        alone = self._on_computing(application.alone, dict.fromkeys(self.pinned, products))
        beside, spent = self._communicate(products)
        return Round(
            alone={host: took.wall_ns / 1e9 for host, took in alone.items()},
            beside={host: beside[host].wall_ns / 1e9 for host in self.pinned},
            communication=spent,
        )

    def _communicate(self, products: int) -> tuple[Mapping[str, Took], Communication]:
        self._prepare()
        everything, before = _everything(), self._stage.groups.total()
        took = self._run(products)
        spent, busy = self._stage.groups.total() - before, everything.cpu_ns(group())
        kernels = sum(one.cpu_ns for one in took.values())
        return took, Communication(
            seconds=self._conclude(),
            kernel_cpu=kernels / 1e9,
            host_cpu=(spent.application - kernels) / 1e9,
            nic_cpu=spent.nic / 1e9,
            all_cpu=busy / 1e9,
        )

    def _prepare(self) -> None:
        buffers = self._stage.buffers
        buffers.prepare(self._algorithm, self._data, len(self._hosts))
        files: dict[str, tuple[str, Path, Path]] = {
            host: (self._algorithm.name, buffers.data(rank), buffers.received(rank))
            for rank, host in enumerate(self._hosts)
        }
        self._call({host: Call(application.prepare, arguments) for host, arguments in files.items()})

    def _run(self, products: int) -> Mapping[str, Took]:
        start_at = time.monotonic_ns() + int((LEAD_S + LEAD_PER_RANK_S * len(self._hosts)) * 1e9)
        took: dict[str, Took] = self._call(
            {
                host: Call(application.communicate, (start_at, products if host in self.pinned else 0))
                for host in self._hosts
            }
        )
        for host, one in took.items():
            if one.failure is not None:
                raise ExperimentFailed(f"{host}: {one.failure}")
        return took

    def _conclude(self) -> float:
        """Seconds of the collective, every byte of which was right."""
        answers = self._call({host: Call(application.conclude) for host in self._hosts})
        seconds = judge.seconds([answers[host] for host in self._hosts])
        if wrong := self._stage.buffers.wrong_bytes(self._algorithm, self._data, len(self._hosts)):
            raise ExperimentFailed(f"{wrong} bytes are wrong in the ranks' receive buffers")
        if seconds is None:
            raise ExperimentFailed("a rank did not finish")
        return seconds

    def _on_computing(self, function: Callable[..., Any], argument: Mapping[str, int]) -> dict[str, Took]:
        return self._call({host: Call(function, (value,)) for host, value in argument.items()})

    def _call(self, calls: Mapping[str, Call]) -> dict[str, Any]:
        return self._stage.ranks.call(calls, self._stage.check)


def _everything() -> ProcessTimes:
    """The CPU time, from now on, of all processes in the sandbox, which are the only ones seen here."""
    times = ProcessTimes("all that is there now")
    times.make(group())
    times.place(group(), [int(process.name) for process in Path("/proc").glob("[0-9]*")])
    return times
