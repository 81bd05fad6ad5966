"""The two control groups of each host, so that the CPU time of its application and of its NIC are accounted apart.

They are ``treecast/<run>/<host>/application`` and ``.../nic``. Whoever keeps the ledger removes them when the run is
over (``experiments.ledger``), since the run itself is still in them at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from experiments.errors import EnvironmentMissing
from topo.cgroups import forms
from topo.cgroups.find import find
from topo.cgroups.groups import Groups, Unsupported
from topo.cgroups.process_times import ProcessTimes

APPLICATION, NIC = "application", "nic"


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU time of a host's application and of its NIC, in ns."""

    application: int = 0
    nic: int = 0

    def __add__(self, other: Cpu) -> Cpu:
        """Of both."""
        return Cpu(self.application + other.application, self.nic + other.nic)

    def __sub__(self, earlier: Cpu) -> Cpu:
        """What was added since ``earlier``."""
        return Cpu(self.application - earlier.application, self.nic - earlier.nic)


class HostGroups:
    """The groups of the hosts of ``run``; ``groups`` are this machine's by default."""

    def __init__(self, run: str, groups: Groups | None = None) -> None:
        self._run = run
        self._groups = groups or _usable(run)
        self._hosts: list[str] = []
        self._begun = self._ended = Cpu()

    @property
    def mechanism(self) -> str:
        """What does the accounting, in a user's words."""
        return self._groups.mechanism

    def place(self, host: str, application_pids: Iterable[int], nic_pids: Iterable[int]) -> None:
        """Have a host's processes be accounted from now on. A host may be placed again, with a new NIC."""
        for part, pids in ((APPLICATION, application_pids), (NIC, nic_pids)):
            self._groups.make(self._path(host, part))
            self._groups.place(self._path(host, part), pids)
        if host not in self._hosts:
            self._hosts.append(host)

    def pin_nics(self, cpus: Collection[int]) -> None:
        """Have all NICs run on these CPUs alone; :class:`EnvironmentMissing` where that is not possible."""
        self._give(lambda nic: self._groups.pin(nic, cpus))

    def limit_nics(self, cpus: float) -> None:
        """Let each NIC have so many CPUs at most, like 0.5; :class:`EnvironmentMissing` where that is not possible."""
        self._give(lambda nic: self._groups.limit(nic, cpus))

    def _give(self, give: Callable[[PurePosixPath], None]) -> None:
        try:
            for host in self._hosts:
                give(self._path(host, NIC))
        except Unsupported as problem:
            raise EnvironmentMissing(f"a NIC cannot be given its CPUs: {problem}") from None

    def cpu_ns(self) -> Mapping[str, Cpu]:
        """The CPU time of every host so far."""
        return {
            host: Cpu(*(self._groups.cpu_ns(self._path(host, part)) for part in (APPLICATION, NIC)))
            for host in self._hosts
        }

    def total(self) -> Cpu:
        """The CPU time of all hosts together so far."""
        return sum(self.cpu_ns().values(), Cpu())

    def begin(self) -> None:
        """An operation begins."""
        self._begun = self._ended = self.total()

    def end(self) -> None:
        """It has ended."""
        self._ended = self.total()

    def spent(self, *, offloaded: bool) -> dict[str, float]:
        """Seconds of CPU time in between by who spent it, as in ``Run.cpu``; nothing where there are no groups.

        Processes that account for themselves do it better than their clocks seen from outside.
        """
        if isinstance(self._groups, ProcessTimes):
            return {}
        spent = self._ended - self._begun
        host = spent.application / 1e9
        return {"nic": spent.nic / 1e9, "application": host} if offloaded else {"endpoints": host}

    def _path(self, host: str, part: str) -> PurePosixPath:
        return forms.group(self._run, host, part)


def _usable(run: str) -> Groups:
    """This machine's control groups, or process times where the run's cannot be made."""
    groups = find()
    try:
        groups.make(forms.group(run))
    except OSError as problem:
        return ProcessTimes(f"{groups.mechanism}: {problem.strerror}")
    return groups
