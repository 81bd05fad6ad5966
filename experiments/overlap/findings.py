"""What an overlap experiment found, and whether the targets are met. Pure: nothing is measured here.

An offloaded collective should leave the host's CPU to the application. Two things say so: a kernel of fixed work takes
as long beside a collective as alone, which can be seen where there are cores for all who compute at a time, and the
host spends hardly any CPU time on communication, which can be seen anywhere.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median

from pydantic import BaseModel, ConfigDict

from experiments.errors import UserError
from experiments.results import Run

FILE = "overlap.json"
SLOWDOWN = 1.05
"""Of the kernel beside a collective to the kernel alone: at most."""
SHARE = 0.02
"""Of the CPU time that hosts spend on communication in that of their NICs: less than."""
BUSY = 0.8
"""Of its time, a CPU that several share: those that find it busier have to wait too long for each other."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Communication(_Value):
    """A collective on NICs: its time, and the CPU time of all hosts together meanwhile, in seconds.

    ``host_cpu`` is what applications spent on posting and waiting, all that was not the kernel's ``kernel_cpu``;
    ``nic_cpu`` is that of the NICs, ``all_cpu`` that of all processes of the run, switches' too.
    """

    seconds: float
    kernel_cpu: float
    host_cpu: float
    nic_cpu: float
    all_cpu: float

    @property
    def load(self) -> float:
        """How many CPUs everything together kept busy."""
        return self.all_cpu / self.seconds


class Round(_Value):
    """The kernel alone, then beside a collective: its seconds by computing host."""

    alone: dict[str, float]
    beside: dict[str, float]
    communication: Communication

    @property
    def slowdown(self) -> float:
        """Of the computing host that was slowed down most."""
        return max(self.beside[host] / self.alone[host] for host in self.alone)

    @property
    def covered(self) -> float:
        """The part of the kernels' time during which the collective was on, at most 1."""
        return min(1.0, self.communication.seconds / max(self.beside.values()))


class OnHosts(_Value):
    """The same collective on the hosts themselves: its time, and the CPU time of all of them together, in seconds."""

    seconds: float
    host_cpu: float

    @classmethod
    def of(cls, run: Run) -> OnHosts:
        """Of a verified operation without NICs."""
        assert run.seconds is not None
        return cls(seconds=run.seconds, host_cpu=run.cpu["endpoints"])


class Findings(_Value):
    """All rounds of an experiment. ``accounting`` says in words what CPU times were taken from.

    ``idle`` is the collective while no host computed. ``cpus`` is how many CPUs there are, and ``pinned`` has those of
    the kernels, by host.
    """

    version: int = 1
    topology: str
    ranks: int
    bytes_per_rank: int
    link_rate_bps: int
    workers: int
    accounting: str
    cpus: int
    pinned: dict[str, int]
    idle: Communication
    products: int
    rounds: list[Round]
    on_hosts: OnHosts | None = None

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def read(cls, file: Path) -> Findings:
        """What :meth:`to_json` wrote; :class:`UserError` for anything else."""
        try:
            return cls.model_validate_json(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise UserError(f"{str(file)!r}: {problem}") from None


class Target(_Value):
    """``value`` is what was found, ``bound`` what it may be. ``met`` is None where this machine cannot tell."""

    name: str
    value: float
    bound: float
    met: bool | None
    remark: str = ""


def targets(found: Findings) -> list[Target]:
    """Time, and CPU time."""
    slowdown = median(entry.slowdown for entry in found.rounds)
    kernels = len(found.pinned)
    enough = found.cpus >= cpus_needed(kernels, found.idle.load)
    share = host_share(found)
    return [
        Target(
            name="kernel beside the collective, of alone",
            value=slowdown,
            bound=SLOWDOWN,
            met=slowdown <= SLOWDOWN if enough else None,
            remark="" if enough else f"kernels need {kernels}, all else {found.idle.load:.2f}, of {found.cpus} CPUs",
        ),
        Target(name="hosts' CPU time for communication, of their NICs'", value=share, bound=SHARE, met=share < SHARE),
    ]


def cpus_needed(computing: int, load: float) -> int:
    """One for each kernel, and enough for all else."""
    return computing + math.ceil(load / BUSY)


def host_share(found: Findings) -> float:
    """CPU time of hosts for communication, of that of their NICs: idle, or beside kernels, whichever is more."""
    rounds = [entry.communication for entry in found.rounds]
    beside = sum(entry.host_cpu for entry in rounds) / sum(entry.nic_cpu for entry in rounds)
    return max(beside, found.idle.host_cpu / found.idle.nic_cpu)
