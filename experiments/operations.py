"""Operations on a fabric that is up: each is carried out, watched, compared byte by byte, and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from controller.plan import Plan
from endpoints.collectives.registry import Algorithm, Collective
from endpoints.io.commands import RankResult
from experiments import judge, theory
from experiments.buffers import Buffers
from experiments.data import Data
from experiments.errors import Refused
from experiments.external.registry import External
from experiments.faults.director import Director
from experiments.fidelity.observe import observe
from experiments.fidelity.verdict import assess, assess_probe, combine
from experiments.folder import ResultFolder
from experiments.guests import Guests
from experiments.host_groups import HostGroups
from experiments.injection import hit_lines
from experiments.movement.link_theory import LinkTheory
from experiments.movement.offloaded import OffloadedTheory
from experiments.movement.port_traffic import Moved
from experiments.ranks import Ranks
from experiments.results import Run
from experiments.scenario import Scenario
from experiments.ui import Progress
from experiments.watch import Seen, Watch
from topo.fabric import link_key
from topo.platform import Platform


class Operations:
    """Runs operations on a fabric that is up, each among the hosts whose endpoints are there."""

    def __init__(
        self,
        scenario: Scenario,
        folder: ResultFolder,
        progress: Progress,
        ranks: Ranks,
        guests: Guests,
        buffers: Buffers,
        check: Callable[[], None],
        watch: Watch,
        plan: Plan,
        platform: Platform,
        faults: Director,
        groups: HostGroups,
        probe_bps: Mapping[str, int],
    ) -> None:
        self._scenario = scenario
        self._folder = folder
        self._progress = progress
        self._ranks = ranks
        self._guests = guests
        self._buffers = buffers
        self._check = check
        self._watch = watch
        trees = tuple(plan.trees.values())
        self._links = cache(lambda hosts: LinkTheory(scenario.fabric, trees, hosts, scenario.mtu, scenario.protocol))
        self._offloaded = cache(
            lambda comm: OffloadedTheory(
                scenario.fabric, trees, comm, scenario.protocol, scenario.workers, scenario.worker_nic
            )
        )
        self._platform = platform
        self._faults = faults
        self._groups = groups
        self.probe_bps = dict(probe_bps)
        path = Path(scenario.input) if scenario.input else None
        self._data = Data(scenario.size_bytes, scenario.seed, path)
        self._everybody = [host.name for host in scenario.by_rank]
        self._refused: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The first algorithm's."""
        return self._scenario.algorithms[0]

    @property
    def skipped(self) -> dict[str, str]:
        """Why an algorithm has been left out, by its name."""
        return self._guests.skipped | self._refused

    def of(self, name: str, size_bytes: int) -> Operations:
        """The same for another algorithm and size; :class:`UserError` where that cannot run on this fabric."""
        changed = {"algorithms": (name,), "size_bytes": size_bytes, "faults": (), "shaped_bps": None}
        scenario = Scenario.of(self._scenario.model_dump() | changed)
        other = copy(self)
        other.__dict__.update(_scenario=scenario, _data=Data(size_bytes, scenario.seed, None))
        return other

    def one(self, number: int) -> Run:
        """One operation of the first algorithm, with that number; :class:`Refused` where those who are left cannot."""
        algorithm = self._scenario.collectives[0]
        assert isinstance(algorithm, Collective)
        return self._operation(algorithm, number, algorithm.name)

    def operations(self) -> Iterator[Run]:
        """Every algorithm, as often as asked.

        Where endpoints have ended, the operations after that are those of the others; what these cannot do is left out.
        An operation that fails otherwise is the last, since the next would fail as well. An external program that
        cannot be started, or fails, is left out from then on, and the others go on. Warm-up operations are verified
        like the others and then forgotten, unless they fail.
        """
        scenario = self._scenario
        for iteration in range(1 - scenario.warmup, scenario.iterations + 1):
            for algorithm in scenario.collectives:
                label = f"{algorithm.name} {iteration}/{scenario.iterations}"
                if iteration < 1:
                    label = f"{algorithm.name} warm-up"
                if isinstance(algorithm, External):
                    self._progress.phase(label, None)
                    yield from self._external(algorithm, iteration)
                    continue
                try:
                    result = self._operation(algorithm, iteration, label)
                except Refused as problem:
                    self._refused[algorithm.name] = str(problem)
                    continue
                if iteration >= 1 or result.error is not None:
                    yield result
                if result.error is not None and not result.missing:
                    return

    def _external(self, algorithm: External, iteration: int) -> Iterator[Run]:
        """One operation of an external program, started if need be; nothing if it is left out, or warms up well."""
        if not self._guests.ready(algorithm):
            return
        ranks = len(self._everybody)
        self._buffers.prepare(algorithm, self._data, ranks)
        if iteration >= 1:
            self._faults.operation_begins(time.monotonic_ns())
        (measured, error), seen = self._watch.over(
            lambda: self._guests.run(algorithm, self._buffers, self._limit(algorithm, ranks))
        )
        self._check()
        self._progress.phase("verify", None)
        wrong = 0 if error else self._buffers.wrong_bytes(algorithm, self._data, ranks)
        error = error or _complaint(wrong)
        if iteration >= 1 or error is not None:
            result = self._record(
                algorithm,
                max(iteration, 1),
                ranks,
                seen.moved,
                measured.seconds if measured else None,
                error=error,
                wrong_bytes=wrong,
                link_bytes_bound=self._bound(algorithm),
                cpu={"endpoints": measured.cpu_seconds} if measured else {},
                extra_seconds=measured.extra_seconds if measured else {},
            )
            yield self._judged(result, (), seen, self._everybody)

    def _operation(self, algorithm: Collective, iteration: int, label: str) -> Run:
        """One operation, a warm-up if ``iteration`` is less than 1."""
        hosts = self._assembled(algorithm)
        begins = self._faults.operation_begins if iteration >= 1 else _nothing
        iteration = max(iteration, 1)

        def starts(at: int) -> None:
            begins(at)
            self._groups.begin()

        def begun() -> list[RankResult]:
            self._progress.phase(label, None)  # now, when the programs that read counters have come and gone
            try:
                return self._ranks.run(algorithm, self._data, self._told, starts)
            finally:
                self._groups.end()
                self._faults.operation_ends()

        reports, seen = self._watch.over(begun)
        cpu = self._groups.spent(offloaded=self._scenario.offload == "nic") or judge.cpu_seconds(reports)
        self._check()
        reports = self._ranks.settled(reports)
        error = self._ranks.cancelled or judge.diagnosis(reports, dict(enumerate(hosts)))
        self._progress.phase("verify", None)
        wrong = 0 if error else self._buffers.wrong_bytes(algorithm, self._data, len(hosts))
        error = error or _complaint(wrong)
        if hits := hit_lines(reports, [self._everybody.index(host) for host in hosts]):
            self._folder.write(f"injected-{algorithm.name}-{iteration}.jsonl", hits)
        result = self._result(algorithm, iteration, hosts, reports, seen.moved, cpu, wrong, error)
        return self._judged(result, reports, seen, hosts)

    def _assembled(self, algorithm: Collective) -> list[str]:
        """The host of each rank of the next operation: all whose endpoints are there, in order."""
        self._ranks.assemble()
        hosts = self._ranks.names
        root = self._everybody[0]
        if algorithm.does.rooted and root not in hosts:
            how = self._ranks.gone[root]
            raise Refused(f"its root {root} is missing: {how}; an Allgather needs none")
        return hosts

    def _judged(self, result: Run, reports: Sequence[RankResult], seen: Seen, hosts: Sequence[str]) -> Run:
        """The result with the verdict on whether it was true; ``hosts`` has the host of each rank."""
        moved = seen.moved
        observed = observe(
            self._scenario,
            result,
            hosts,
            reports,
            seen.watched,
            moved.interfaces,
            self._platform.datapath,
            quiet=moved.quiet,
            disturbed=self._faults.disturbed(seen.watched.before.at_ns, seen.watched.after.at_ns),
        )
        probed = assess_probe(self.probe_bps, self._scenario.link_rate_bps)
        return result.model_copy(update={"fidelity": combine((assess(observed), probed))})

    def _told(self, phase: str, received: int, chunks: int) -> None:
        self._check()
        self._progress.note(phase)
        self._progress.advance(min(received, chunks), chunks)

    def _result(
        self,
        algorithm: Collective,
        iteration: int,
        hosts: Sequence[str],
        reports: Sequence[RankResult],
        moved: Moved,
        cpu: dict[str, float],
        wrong: int,
        error: str | None,
    ) -> Run:
        scenario, ranks = self._scenario, len(hosts)
        seconds = judge.seconds(reports)
        expected = -(-scenario.size_bytes // scenario.mtu) * algorithm.roots(ranks) * (ranks - 1)
        offloaded = scenario.offload == "nic"
        theory_of = self._offloaded(self._ranks.comm) if offloaded else self._links(tuple(hosts))
        loads = theory_of.loads(algorithm, scenario.size_bytes)
        return self._record(
            algorithm,
            iteration,
            ranks,
            moved,
            seconds,
            hosts=[] if ranks == scenario.ranks else list(hosts),
            missing=[hosts[report.rank] for report in reports if report.gone],
            failures=judge.complaints(reports, dict(enumerate(hosts))),
            wrong_bytes=wrong,
            error=error or (None if seconds is not None else "a rank did not finish"),
            phases=judge.phase_seconds(reports),
            packets=judge.packets(reports, expected if algorithm.multicast else None),
            injected=judge.injected(reports),
            link_bytes_theory={link: load.bytes for link, load in loads.items()},
            link_packets_theory={link: load.packets for link, load in loads.items()},
            cpu=cpu,
        )

    def _record(
        self,
        algorithm: Algorithm,
        iteration: int,
        ranks: int,
        moved: Moved,
        seconds: float | None,
        *,
        error: str | None,
        **found: Any,
    ) -> Run:
        """What is said of every operation, whoever carried it out, and what was ``found`` besides."""
        scenario = self._scenario
        limit = self._limit(algorithm, ranks)
        return Run(
            algorithm=algorithm.name,
            iteration=iteration,
            ranks=ranks,
            bytes_per_rank=scenario.size_bytes,
            verified=error is None,
            error=error,
            seconds=seconds,
            limit_seconds=limit,
            limit_ratio=limit / seconds if seconds else None,
            link_bytes=moved.link_bytes,
            link_packets=moved.link_packets,
            port_mismatches=moved.mismatches,
            host_tx_bytes={
                host.name: moved.link_bytes[link_key(host.name, scenario.fabric.edge_of[host.name])]
                for host in scenario.fabric.hosts
            },
            **found,
        )

    def _bound(self, algorithm: External) -> int | None:
        if algorithm.bound is None:
            return None
        links = self._links(tuple(self._everybody))
        return algorithm.bound.payload(links, algorithm.kind, self._scenario.size_bytes)

    def _limit(self, algorithm: Algorithm, ranks: int) -> float:
        scenario = self._scenario
        return theory.limit_seconds(algorithm.kind, ranks, scenario.size_bytes, scenario.link_rate_bps)


def _nothing(_: int) -> None:
    """A warm-up begins."""


def _complaint(wrong: int) -> str | None:
    return f"{wrong} bytes are wrong in the ranks' receive buffers" if wrong else None
