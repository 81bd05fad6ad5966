"""The result file ``summary.json``: one schema with a version number, from which every figure of a report comes.

Times are as measured, in seconds of this machine; bandwidths and times at the emulated rate follow from the scenario's
``scale`` and are never stored. Counts are sums over all ranks unless they say otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from experiments.errors import UserError
from experiments.scenario import Scenario

VERSION: Literal[1] = 1
SUMMARY = "summary.json"
Verdict = Literal["valid", "overloaded", "invalid", "unknown"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlatformInfo(_Value):
    """What the run ran on. ``impairments`` has the mechanism by kind, ``versions`` the program's by name.

    ``accounting`` is what hosts' CPU time was taken from, in words.
    """

    kernel: str
    datapath: Literal["kernel", "user"]
    impairments: dict[str, str] = {}
    versions: dict[str, str] = {}
    sysctls: dict[str, int] = {}
    accounting: str = ""


class Packets(_Value):
    """Multicast chunks and packets of RDMA WRITEs.

    ``lost`` is what disappeared without our doing, ``rejected`` what was dropped, by reason.
    ``ring_dropped`` counts frames of any kind that found a host's receive queue full.
    """

    sent: int = 0
    received: int = 0
    duplicates: int = 0
    dropped_injected: int = 0
    lost: int = 0
    ring_dropped: int = 0
    recovered: int = 0
    rejected: dict[str, int] = {}


class PortMismatch(_Value):
    """A directed link of which those who count at its ends do not say the same.

    ``counted`` has what each says, like ``"kernel tx h1"`` or ``"openflow rx e00"``; None where it did not say. Where
    not ``quiet``, frames were on their way while the counters were read, which may be the reason.
    """

    link: str
    quantity: Literal["bytes", "packets"]
    counted: dict[str, int | None]
    quiet: bool


class Fidelity(_Value):
    """Whether the emulation was true: whether this machine kept up with the network that it played.

    ``overloaded``: it did not, and the times say more about it than about the network. ``invalid``: frames are missing
    and nothing says why, or links are not as asked. ``figures``, the worst of each: ``unread_ms`` that frames lay at a
    switch, ``late_ms`` of endpoints, ``host_waited`` and ``switch_busy`` as parts of the time, ``queue_fill`` of a
    link's queue and ``send_buffer_fill`` of the switches' as parts of their size, ``down_drops`` at links that were
    down, ``probe_ratio``. A valid run may have reasons, too, that explain its result.
    """

    verdict: Verdict = "unknown"
    reasons: list[str] = ["not assessed"]
    figures: dict[str, float] = {}


class Run(_Value):
    """One operation of one algorithm.

    ``seconds`` is the slowest rank's time from its first barrier message to its last handshake, None where a rank did
    not finish; ``limit_seconds`` what the receiving link needs for the payload alone, ``limit_ratio`` that over
    ``seconds``. ``phases`` has the seconds of each rank by phase. Links are directed: ``"h1->e00"``; their bytes
    include headers; theory has what the frames with payload make, without acknowledgements, barrier and repairs. Of an
    external program, whose frames are not known, ``link_bytes_bound`` is what it must move at the least over all links
    together, payload alone (``movement.bounds``).
    ``port_mismatches`` is empty where the kernel and OpenFlow agree at both ends of every link. ``injected`` counts
    packets hit by impairments, by kind; which they were is in the result folder.

    ``hosts`` has the host of each rank where not all of the summary's took part, since endpoints had ended; ``missing``
    are those whose endpoints ended in this very operation, and ``failures`` has what each rank says of one that failed,
    by host.

    ``cpu`` has seconds by part: ``endpoints`` are the hosts' programs; where hosts have NICs, it is ``nic`` and
    ``application``. For an external program ``seconds`` is what it says of itself, without its start-up;
    ``extra_seconds`` has what else it says, or was seen to take, by its name.
    """

    algorithm: str
    iteration: int = Field(ge=1)
    ranks: int
    hosts: list[str] = []
    bytes_per_rank: int
    verified: bool
    wrong_bytes: int = 0
    error: str | None = None
    missing: list[str] = []
    failures: dict[str, str] = {}
    seconds: float | None
    limit_seconds: float
    limit_ratio: float | None
    phases: dict[str, list[float]] = {}
    packets: Packets = Packets()
    injected: dict[str, int] = {}
    link_bytes: dict[str, int] = {}
    link_bytes_theory: dict[str, int] = {}
    link_bytes_bound: int | None = None
    link_packets: dict[str, int] = {}
    link_packets_theory: dict[str, int] = {}
    port_mismatches: list[PortMismatch] = []
    host_tx_bytes: dict[str, int] = {}
    cpu: dict[str, float] = {}
    extra_seconds: dict[str, float] = {}
    fidelity: Fidelity = Fidelity()

    @property
    def host_cpu_seconds(self) -> float | None:
        """What the hosts themselves spent, which is not what their NICs did; None where it was not measured."""
        return self.cpu.get("endpoints", self.cpu.get("application"))


class Skipped(_Value):
    """What was asked for and left out, with the reason and, where there is one, the cure.

    An external program that is not there or has failed, or operations whose root has ended.
    """

    algorithm: str
    reason: str


class FaultRow(_Value):
    """A fault of the timeline, or put in by hand: declared, applied, observed.

    Times are seconds after the first operation's start, None where it was never in force or still is. ``observed`` has
    exact counts by name, from the kernel or the endpoint; ``agrees`` says whether they are what was declared, None
    where nothing can tell.
    """

    number: int
    declared: str
    fault: str
    mechanism: str
    applied_seconds: float | None
    ended_seconds: float | None
    outcome: str
    observed: dict[str, int] = {}
    agrees: bool | None = None
    remark: str = ""


class Summary(_Value):
    """Everything that one experiment found.

    ``hosts`` has the host of each rank, in the order of ranks. ``skipped`` has what has no ``runs`` although it was
    asked for, or fewer. ``probe_bps`` is what directed links carried alone before the runs, in bit/s; links are missing
    where there was no time for all, or none at all.
    """

    version: Literal[1] = VERSION
    scenario: Scenario
    platform: PlatformInfo
    hosts: list[str] = []
    probe_bps: dict[str, int] = {}
    runs: list[Run]
    skipped: list[Skipped] = []
    faults: list[FaultRow] = []
    fidelity: Fidelity = Fidelity()

    @property
    def verified(self) -> bool:
        """Whether there were runs and every byte of each was right."""
        return bool(self.runs) and all(run.verified for run in self.runs)

    def verdict_of(self, run: Run) -> Verdict:
        """Whether a run was true: its own verdict, or that of the whole where it has none."""
        return run.fidelity.verdict if run.fidelity.verdict != "unknown" else self.fidelity.verdict

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def read(cls, source: Path) -> Summary:
        """The summary in a file, or in a result folder; OSError or UnicodeDecodeError where that cannot be read."""
        file = source / SUMMARY if source.is_dir() else source
        return cls.from_json(file.read_text(encoding="utf-8"))

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """The summary that :meth:`to_json` wrote; :class:`UserError` for anything else."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the text"
            raise UserError(f"{SUMMARY}: {where}: {first['msg']} (this program reads version {VERSION})") from None
