"""What the parent of a host's process asks of it over its pipe, and what it is answered: plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from endpoints.core.communicator import Communicator
from endpoints.core.config import ProtocolConfig
from endpoints.core.packets import Opcode
from endpoints.core.states import Phase
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.live_faults import Way

PHASES = tuple(Phase)


@dataclass(frozen=True, slots=True)
class HostSetup:
    """All that one endpoint needs to begin. ``namespace`` is a path such as ``/proc/123/ns/net``.

    ``progress`` is a file of two numbers for each worker of each rank.
    """

    namespace: str
    interface: str
    comm: Communicator
    rank: int
    config: ProtocolConfig
    templates: Mapping[Opcode, bytes]
    seed: int
    rq_depth: int
    impairments: tuple[ImpairmentSpec, ...]
    progress: Path
    first_op: int = 1
    """The number of the first operation."""
    nic_memory: int | None = None
    """Bytes that a NIC has, if there is one; its default if None."""


@dataclass(frozen=True, slots=True)
class RunOperation:
    """Prepare one collective, answer :class:`Ready`, await :class:`Go`. ``data`` and ``buffer`` are files."""

    algorithm: str
    data: Path
    buffer: Path


@dataclass(frozen=True, slots=True)
class Go:
    """Enter the barrier of the prepared operation at this time (monotonic ns)."""

    start_at: int


@dataclass(frozen=True, slots=True)
class Abort:
    """Give up the operation that is prepared or under way, for this reason; nothing where it has ended by itself."""

    reason: str
    suspect: int | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """Say again what there was to say of the last operation, with the packets that came after its end."""


@dataclass(frozen=True, slots=True)
class Regroup:
    """Be ``rank`` of another communicator from now on, and answer :class:`Ready`.

    Nothing of earlier operations goes on; the next one has the number ``first_op``. Live faults stay as they are.
    """

    comm: Communicator
    rank: int
    first_op: int


@dataclass(frozen=True, slots=True)
class Call:
    """Call ``function(nic, *arguments)`` in the application of a host with a NIC, and answer :class:`Returned`.

    It is a function of a module, since its name is what is sent; ``nic`` is the ``nic.verbs.Nic``.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """End the process."""


Command = HostSetup | RunOperation | Go | Abort | Settle | Regroup | Call | Stop


@dataclass(frozen=True, slots=True)
class Ready:
    """The endpoint is up (ring open, groups joined) or regrouped, or the operation is prepared (buffers in memory)."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The endpoint's process met an exception."""

    rank: int
    trace: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What a function returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class RankResult:
    """What one rank says of one operation; its buffer is judged by others. Times in monotonic ns.

    ``gone`` is how its process ended, said by whoever waited for it.
    """

    rank: int
    phases: list[tuple[str, int]]
    failure: tuple[str, int | None] | None
    counters: dict[str, int]
    ring_dropped: int
    cpu_seconds: float
    heard_at: int = 0
    """When anything last came from any rank."""
    late_ns: int = 0
    """The longest that something due had to wait for the processor."""
    late_counts: tuple[int, ...] = ()
    """How often something waited, by class of ``io.lateness.BOUNDS_NS``."""
    hits: list[tuple[Any, ...]] = field(default_factory=list)
    held: dict[tuple[Way, int], int] = field(default_factory=dict)
    """By way and opcode, how many more packets faults held back at the end than at the beginning."""
    gone: str | None = None
    application_cpu_seconds: float | None = None
    """Where the operation ran on a NIC, what the application spent on it; ``cpu_seconds`` are then the NIC's."""
