"""What a report is made from: the operations of a run's folder, of a sweep's, or of a folder of runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from endpoints.collectives.kinds import KindName
from experiments.errors import UserError
from experiments.results import SUMMARY, Run, Summary
from experiments.scenario import Scenario
from experiments.sweep import journal

IDENTITY = frozenset({"name", "seed", "iterations", "warmup", "algorithms", "shaped_bps", "capture", "input", "expect"})
"""Fields of a scenario in which operations may differ and yet be repetitions of one another."""

ALL = "all"
"""How ``chains`` is told where all roots send at once, whose number follows from the topology."""


@dataclass(frozen=True)
class Operation:
    """One operation that was measured, and what it was measured on."""

    folder: Path
    summary: Summary
    run: Run

    @property
    def scenario(self) -> Scenario:
        """Everything that was set."""
        return self.summary.scenario

    @property
    def verdict(self) -> str:
        """Whether the machine kept up: ``valid``, ``overloaded``, ``invalid`` or ``unknown``."""
        return self.summary.verdict_of(self.run)

    @property
    def counts(self) -> bool:
        """Whether its time means anything: it ended, and every byte was right."""
        return self.run.verified and bool(self.run.seconds)

    @property
    def seconds(self) -> float:
        """As measured."""
        assert self.run.seconds is not None  # it counts
        return self.run.seconds

    @property
    def limit_ratio(self) -> float:
        """The time that a receiving link needs for the payload alone, over the time taken."""
        return self.run.limit_seconds / self.seconds

    @property
    def throughput_bps(self) -> float:
        """Payload that each rank's link received per second, bit/s as measured: nccl-tests' busbw."""
        return self.limit_ratio * self.scenario.link_rate_bps

    @property
    def kind(self) -> KindName:
        """What the algorithm does; of one that the scenario does not name by the blocks that a rank must receive."""
        per_block = self.run.bytes_per_rank * 8 / self.scenario.link_rate_bps
        blocks = self.run.limit_seconds / per_block if per_block else 0
        named = [entry.kind for entry in self.scenario.collectives if entry.name == self.run.algorithm]
        return named[0] if named else ("allgather" if blocks > 1.5 else "broadcast")

    @cached_property
    def setting(self) -> dict[str, Any]:
        """The fields in which repetitions are alike, by name, as values that compare."""
        fields = self.scenario.model_dump(exclude=set(IDENTITY), mode="json")
        fields["size_bytes"] = self.run.bytes_per_rank
        fields["chains"] = ALL if self.scenario.chains == self.scenario.ranks else self.scenario.chains
        return {name: _comparable(value) for name, value in fields.items()}


@dataclass(frozen=True, slots=True)
class Lost:
    """A point of a sweep that left no results."""

    what: str
    error: str


@dataclass(frozen=True)
class Evidence:
    """All that a folder holds. ``lost`` are points that failed without results."""

    folder: Path
    operations: tuple[Operation, ...]
    lost: tuple[Lost, ...] = ()

    @cached_property
    def counting(self) -> tuple[Operation, ...]:
        """The operations whose times mean something."""
        return tuple(operation for operation in self.operations if operation.counts)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The fields in which settings differ."""
        names = list(dict.fromkeys(name for operation in self.operations for name in operation.setting))
        return tuple(name for name in names if len({op.setting.get(name) for op in self.operations}) > 1)

    @cached_property
    def summaries(self) -> dict[Path, Summary]:
        """Each result folder's summary."""
        return {operation.folder: operation.summary for operation in self.operations}


def gather(folder: Path) -> Evidence:
    """The evidence in ``folder``; :class:`UserError` where there is none."""
    if (folder / SUMMARY).is_file():
        return Evidence(folder, tuple(_operations(folder)))
    if (folder / journal.NAME).is_file():
        return _of_sweep(folder)
    below = sorted(path.parent for path in folder.glob(f"*/{SUMMARY}") if not path.parent.is_symlink())
    operations = tuple(operation for path in below for operation in _operations(path))
    if not operations:
        raise UserError(
            f"report {str(folder)!r}: holds no results; give the folder of a run ({SUMMARY}) or of a sweep "
            f"({journal.NAME})"
        )
    return Evidence(folder, operations)


def _of_sweep(folder: Path) -> Evidence:
    operations: list[Operation] = []
    lost: list[Lost] = []
    for record in journal.read(folder / journal.NAME).values():
        path = folder / (record.folder or "")
        if record.folder and (path / SUMMARY).is_file():
            operations += _operations(path)
        else:
            lost.append(Lost(path.name.partition("-")[2] or record.key, record.error or "no results are there"))
    if not operations and not lost:
        raise UserError(f"report {str(folder)!r}: no point of this sweep is over yet")
    return Evidence(folder, tuple(operations), tuple(lost))


def _operations(folder: Path) -> Iterator[Operation]:
    try:
        summary = Summary.read(folder / SUMMARY)
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"report {str(folder / SUMMARY)!r}: {problem}") from None
    except UserError as problem:
        raise UserError(f"report {str(folder)!r}: {problem}") from None
    for run in summary.runs:
        yield Operation(folder, summary, run)


def _comparable(value: Any) -> Any:
    """Lists and mappings as values that can be keys."""
    if isinstance(value, list):
        return tuple(_comparable(part) for part in value)
    if isinstance(value, dict):
        return tuple((key, _comparable(part)) for key, part in value.items())
    return value
