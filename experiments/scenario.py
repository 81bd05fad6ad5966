"""A scenario: every parameter of an experiment as one value, complete, checked against itself, and repeatable.

A scenario is made from what the user gave (command line, YAML file, or the ``scenario`` block of a ``summary.json``)
and holds it *resolved*: defaults filled in, the topology's parameters spelt out, both the emulated and the shaped rate.
Given back as input it repeats the run. Whatever cannot run as asked is refused here, before anything is started.

Only links scale: with ``scale`` 1000 a link of 56 Gbit/s and 1 us is shaped at 56 Mbit/s and 1 ms. All other times are
times of this machine.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from endpoints.collectives.registry import Collective, UnknownCollective
from endpoints.core.communicator import FRAME_OVERHEAD_UD, WORKERS
from endpoints.core.config import Cutoff, ProtocolConfig
from endpoints.impairments.registry import check
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.nic import budget
from endpoints.nic.device import OUTSTANDING
from experiments import offload, units
from experiments.algorithms import algorithm
from experiments.errors import UserError
from experiments.expectations import Expectation
from experiments.external.registry import External
from experiments.faults.timed import TimedFault, steps
from experiments.faults.timeline import Step
from experiments.fields import (
    Count,
    Cpus,
    Nanoseconds,
    Probability,
    Psns,
    Rate,
    Size,
    Words,
    check_mtu,
    first_complaint,
)
from experiments.placement import Placement, hosts_by_rank
from experiments.targets import capture_target, host_name
from topo.cgroups.forms import LEAST_CPUS
from topo.fabric import Fabric, FabricError, Host
from topo.registry import parse_topology
from topo.shaping import MAX_DELAY_US, MAX_RATE_BPS, MIN_RATE_BPS

_PROTOCOL = ProtocolConfig()
"""The protocol's own defaults, which are chosen and explained there."""

MAX_TREES = 20
"""Groups that a host may join: the kernel's own limit for a socket, net.ipv4.igmp_max_memberships, unless raised."""

NS_PER_US = 1000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Impairment(BaseModel):
    """Something that is done to packets at endpoints: by chance, or to packets that are named.

    ``kind`` is a module of ``endpoints/impairments``; ``hosts`` are where it acts and ``senders`` whose packets it hits
    (names or ranks; empty: all). Either ``probability`` or ``psns``, numbers and pairs of first and last or text like
    ``17,40-60``, says which; ``time_ns`` is how long, for a delay.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    direction: Literal["rx", "tx"] = "rx"
    hosts: Words = ()
    senders: Words = ()
    probability: Probability | None = None
    psns: Psns | None = None
    time_ns: Nanoseconds | None = None

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> Self:
        try:
            check(ImpairmentSpec(self.kind, probability=self.probability, psns=self.psns, time_ns=self.time_ns))
        except ValueError as problem:
            raise UserError(f"impairments: {problem}") from None
        return self


class Scenario(BaseModel):
    """All parameters of an experiment, resolved. Units are in the names; ``scale`` is explained above."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    name: str | None = None

    topology: str = "fattree,k=4"
    rate_bps: Rate = 50_000_000
    scale: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    shaped_bps: int | None = None
    link_delay_ns: Nanoseconds = 0
    queue_packets: Annotated[int, Field(ge=1, le=1_000_000)] = 1000

    placement: Placement = "contiguous"
    algorithms: Words = ("mcast_allgather",)
    size_bytes: Size = 1 << 20
    mtu: int = 4096
    iterations: Count = 1
    warmup: Annotated[int, Field(ge=0, le=1000)] = 1
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 1
    input: str | None = None

    offload: Literal["none", "nic"] = "none"
    workers: Annotated[int, Field(ge=1, le=WORKERS)] = 1
    nic_memory_bytes: Size | None = None
    nic_cpus: Cpus = ()
    nic_limit: Annotated[float, Field(ge=LEAST_CPUS, allow_inf_nan=False)] | None = None

    trees: Annotated[int, Field(ge=1, le=MAX_TREES)] = 1
    chains: Count | None = None
    send_batch: Count = _PROTOCOL.send_batch
    rq_depth: Count = 1024
    cutoff: Literal["inactivity", "deadline"] = "inactivity"
    fetch_early: bool = _PROTOCOL.fetch_early
    slack_chunks: Count = _PROTOCOL.slack_chunks
    op_bits: Annotated[int, Field(ge=8, le=16)] = 8
    peer_timeout_ns: Nanoseconds = _PROTOCOL.peer_timeout_ns
    op_timeout_ns: Nanoseconds = _PROTOCOL.op_timeout_ns
    op_timeout_scaling: Count = _PROTOCOL.op_timeout_scaling

    loss: Probability = 0.0
    reorder: Probability = 0.0
    duplicate: Probability = 0.0
    corrupt: Probability = 0.0
    delay: Probability = 0.0
    delay_ns: Nanoseconds = 5_000_000
    impairments: tuple[Impairment, ...] = ()
    faults: tuple[TimedFault, ...] = ()

    capture: Words = ()
    expect: tuple[Expectation, ...] = ()

    @classmethod
    def of(cls, values: dict[str, Any]) -> Scenario:
        """The scenario for ``values``; :class:`UserError` with one line for the first thing that is wrong."""
        try:
            return cls.model_validate(values)
        except ValidationError as problem:
            known = {
                "": list(cls.model_fields),
                "impairments": list(Impairment.model_fields),
                "faults": list(TimedFault.model_fields),
                "expect": list(Expectation.model_fields),
            }
            raise UserError(first_complaint(problem, known)) from None

    @model_validator(mode="before")
    @classmethod
    def _tree_for_each_worker(cls, values: Any) -> Any:
        """Where nothing is said of trees, workers have as many as let all cores share the work (``offload``)."""
        workers = str(values.get("workers", 1)) if isinstance(values, dict) else ""
        if "trees" in values or workers not in map(str, range(1, WORKERS + 1)):
            return values  # or complained about, each field for itself
        try:
            fabric = parse_topology(values.get("topology", cls.model_fields["topology"].default))
        except FabricError:
            return values
        return {**values, "trees": offload.trees_for(int(workers), fabric, MAX_TREES)}

    @field_validator("name")
    @classmethod
    def _folder_name(cls, value: str | None) -> str | None:
        if value is not None and not _NAME.fullmatch(value):
            raise UserError(f"name {value!r}: write up to 64 letters, digits, dots, dashes and underscores, like run-1")
        return value

    @field_validator("input")
    @classmethod
    def _some_input(cls, value: str | None) -> str | None:
        if value == "":
            raise UserError("input '': name a file, or leave it out for random data")
        return value

    @field_validator("topology")
    @classmethod
    def _known_topology(cls, value: str) -> str:
        try:
            fabric = parse_topology(value)
        except FabricError as problem:
            raise UserError(f"topology: {problem}") from None
        return ",".join([fabric.topology, *(f"{key}={number}" for key, number in fabric.params.items())])

    @field_validator("algorithms")
    @classmethod
    def _known_algorithms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise UserError("algorithms: none is named; `treecast algorithms` lists them")
        for name in value:
            try:
                algorithm(name)
            except UnknownCollective as problem:
                raise UserError(str(problem)) from None
            if value.count(name) > 1:
                raise UserError(f"algorithms: {name} is listed twice; use iterations to repeat it")
        return value

    @field_validator("mtu")
    @classmethod
    def _roce_mtu(cls, value: int) -> int:
        return check_mtu(value)

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        resolved = {
            "shaped_bps": self._shaped_rate(),
            "chains": self._chains(),
            "impairments": tuple(self._named(entry) for entry in self.impairments),
            "faults": tuple(TimedFault.of(step) for step in self.timeline),
            "capture": tuple(capture_target(self.fabric, self.by_rank, target) for target in self.capture),
            "name": self.name or self._default_name(),
        }
        for field, value in resolved.items():
            object.__setattr__(self, field, value)  # frozen for everybody else
        self._check_delay()
        self._check_elements()
        self._check_offload()
        self._check_numbering()
        for expected in self.expect:
            if expected.algorithm not in (None, *self.algorithms):
                raise UserError(
                    f"expect: algorithm {expected.algorithm!r} is not run; algorithms are {', '.join(self.algorithms)}"
                )
        return self

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric that ``topology`` describes."""
        return parse_topology(self.topology)

    @cached_property
    def by_rank(self) -> tuple[Host, ...]:
        """The host that runs each rank, in the order of ranks."""
        return hosts_by_rank(self.fabric, self.placement, self.seed)

    @property
    def ranks(self) -> int:
        """Number of ranks, P: every host of the fabric."""
        return len(self.fabric.hosts)

    @property
    def collectives(self) -> tuple[Collective | External, ...]:
        """The algorithms, in the order in which they run."""
        return tuple(algorithm(name) for name in self.algorithms)

    @property
    def timeline(self) -> tuple[Step, ...]:
        """The steps of ``faults``."""
        try:
            found = steps(self.faults, self.fabric)
        except UserError as problem:
            raise UserError(f"faults: {problem}") from None
        operations = self.iterations * len(self.algorithms)
        for step in found:
            if step.when.operation > operations:
                raise UserError(f"faults: {step}: there are {operations} operations, without warm-ups")
        return found

    @property
    def injects(self) -> bool:
        """Whether anything is done to packets at endpoints."""
        return bool(self.impairments) or any((self.loss, self.reorder, self.duplicate, self.corrupt, self.delay))

    @property
    def protocol(self) -> ProtocolConfig:
        """The protocol's knobs."""
        return ProtocolConfig(
            chains=self.chains,
            send_batch=self.send_batch,
            cutoff=Cutoff(self.cutoff),
            fetch_early=self.fetch_early,
            slack_chunks=self.slack_chunks,
            peer_timeout_ns=self.peer_timeout_ns,
            op_timeout_ns=self.op_timeout_ns,
            op_timeout_scaling=self.op_timeout_scaling,
        )

    @property
    def chunk_bits(self) -> int:
        """Bits of the immediate that number a chunk."""
        return 32 - self.op_bits

    @property
    def worker_nic(self) -> budget.Nic:
        """What each worker of a NIC has of its memory."""
        return budget.of_worker(self.nic_memory_bytes, self.rq_depth, self.workers, OUTSTANDING)

    @property
    def link_rate_bps(self) -> int:
        """The rate at which links are really shaped."""
        assert self.shaped_bps is not None  # resolved
        return self.shaped_bps

    @property
    def shaped_delay_ns(self) -> int:
        """The delay that links really have."""
        return round(self.link_delay_ns * self.scale)

    @property
    def memory_bytes(self) -> int:
        """Bytes that all hosts together need at once: each what it sends and receives, and its staging ring."""
        buffers = max(entry.memory_bytes(self.ranks, self.size_bytes) for entry in self.collectives)
        staging = 2 * self.rq_depth * (self.mtu + FRAME_OVERHEAD_UD)
        return self.ranks * (buffers + staging)

    def check_memory(self, available: int) -> None:
        """Refuse what does not fit into ``available`` bytes."""
        if self.memory_bytes > available:
            raise UserError(
                f"size_bytes {units.format_size(self.size_bytes)}: {self.ranks} ranks need "
                f"{self.memory_bytes / 2**30:.1f} GiB of memory and {available / 2**30:.1f} GiB are free; "
                "use a smaller size or a smaller topology"
            )

    def _shaped_rate(self) -> int:
        shaped = round(self.rate_bps / self.scale)
        if self.shaped_bps not in (None, shaped):
            raise UserError(
                f"shaped_bps {self.shaped_bps}: {self.rate_bps} / scale {self.scale:g} = {shaped}; leave it out"
            )
        rate = units.format_rate(shaped)
        if shaped < MIN_RATE_BPS:
            raise UserError(f"rate_bps {self.rate_bps}: links of {rate} carry nothing; write the unit, like 50M")
        if shaped > MAX_RATE_BPS:
            cure = self.rate_bps // 50_000_000
            raise UserError(f"rate_bps {rate}: more than can be emulated at full speed; add a scale, like {cure}")
        return shaped

    def _chains(self) -> int:
        if self.chains is not None and self.chains > self.ranks:
            raise UserError(f"chains {self.chains}: {self.topology} has {self.ranks} ranks, so at most {self.ranks}")
        return self.chains or self.ranks

    def _named(self, entry: Impairment) -> Impairment:
        def resolve(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(host_name(self.fabric, self.by_rank, name, f"impairments {entry.kind}") for name in names)

        return entry.model_copy(update={"hosts": resolve(entry.hosts), "senders": resolve(entry.senders)})

    def _default_name(self) -> str:
        topology = self.topology.replace("=", "").replace(",", "-")
        return re.sub(r"[^A-Za-z0-9._-]", "-", "-".join([topology, *self.algorithms]))[:64]

    def _check_delay(self) -> None:
        if self.link_delay_ns and not NS_PER_US <= self.shaped_delay_ns <= MAX_DELAY_US * NS_PER_US:
            raise UserError(
                f"link_delay_ns {units.format_time(self.link_delay_ns)}: with scale {self.scale:g} links have "
                f"{units.format_time(self.shaped_delay_ns)}; what can be emulated is from 1 us to 10 s"
            )

    def _check_elements(self) -> None:
        for entry in self.collectives:
            if self.size_bytes % entry.granularity:
                size = self.size_bytes - self.size_bytes % entry.granularity
                raise UserError(
                    f"size_bytes {self.size_bytes}: {entry.name} adds elements of {entry.granularity} bytes; use a "
                    f"multiple of {entry.granularity}, like {size or entry.granularity}"
                )

    def _check_offload(self) -> None:
        if self.offload == "none":
            offload.check_without(vars(self))
            return
        offload.check_workers(self.workers, self.trees)
        for entry in self.collectives:
            if isinstance(entry, Collective) and entry.multicast:
                roots = entry.roots(self.ranks)
                wanted = budget.Collective(self.ranks, roots, self.size_bytes, self.mtu, self.chunk_bits)
                offload.check_memory(entry.name, wanted, self.workers, self.worker_nic)

    def _check_numbering(self) -> None:
        """The immediate must number every chunk of a receive buffer, beside the operation's id."""
        for entry in self.collectives:
            if not isinstance(entry, Collective):
                continue
            chunks = entry.roots(self.ranks) * -(-self.size_bytes // self.mtu)
            if chunks > 1 << self.chunk_bits:
                raise UserError(
                    f"size_bytes {units.format_size(self.size_bytes)}: {entry.name} of {self.ranks} ranks at mtu "
                    f"{self.mtu} has {chunks} chunks and {self.chunk_bits} bits number {1 << self.chunk_bits}; "
                    "use a larger mtu, a smaller size or fewer op_bits"
                )
