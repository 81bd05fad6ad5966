"""The folder of a sweep: ``sweep.yaml``, the journal ``points.jsonl``, and below ``runs/`` a result folder per point.

What a kill leaves is put right before a sweep goes on. A run that had written its summary but not yet its record is
done, and gets the record; a run that had not is nothing, and its folder goes. So no point is made twice or lost.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.errors import UserError
from experiments.folder import Owner, ResultFolder
from experiments.results import SUMMARY, Summary
from experiments.sweep import journal
from experiments.sweep.grid import Point
from experiments.sweep.journal import Journal, Record

SWEEP = "sweep.yaml"
RUNS = "runs"
_LOCK = ".lock"


class SweepFolder:
    """A sweep's folder that is ours to write, from :func:`opened`."""

    def __init__(self, path: Path, log: Journal) -> None:
        self.path = path
        self.runs = path / RUNS
        self.journal = log

    def relative(self, folder: Path) -> str:
        """A run's folder as records have it."""
        return str(folder.resolve().relative_to(self.path.resolve()))

    def mend(self, points: Mapping[str, Point]) -> int:
        """Put right what a kill left of ``points``, which are by name; how many were found to be over."""
        found = 0
        for folder in sorted(self.runs.iterdir()):
            point = points.get(folder.name.partition("-")[2])
            if point is None or folder.is_symlink():
                continue
            record = self.journal.records.get(point.key)
            if record is not None and folder.name <= Path(record.folder or "").name:
                continue  # names begin with the time: this is the one of the record, or one before it
            summary = summary_in(folder)
            if summary is None or summary.scenario != point.scenario:
                shutil.rmtree(folder)
            else:
                self.journal.append(outcome(point, summary, self.relative(folder), None))
                found += 1
        return found


def outcome(point: Point, summary: Summary, folder: str, seconds: float | None) -> Record:
    """The record of a point that has a summary."""
    errors = [run.error for run in summary.runs if run.error]
    if not summary.runs:
        errors = [f"{entry.algorithm}: {entry.reason}" for entry in summary.skipped]
    if summary.verified:
        return Record(key=point.key, status="done", folder=folder, seconds=seconds)
    error = errors[0] if errors else "not every byte was right"
    return Record(key=point.key, status="failed", folder=folder, seconds=seconds, error=error)


def summary_in(folder: Path) -> Summary | None:
    """The summary of a result folder; None where there is none that can be read."""
    try:
        return Summary.read(folder / SUMMARY)
    except (OSError, UnicodeDecodeError, UserError):
        return None


@contextmanager
def opened(path: Path, text: str) -> Iterator[SweepFolder]:
    """Make or reopen the folder of a sweep, whose file is ``text``, for ourselves alone.

    :class:`UserError` where it cannot be written, holds something else, or is at work in another process.
    """
    owner = Owner.calling(os.environ)
    missing = [above for above in (path, *path.parents) if not above.exists()]
    with ExitStack() as stack:
        try:
            _refuse_others(path)
            (path / RUNS).mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(path / _LOCK))
            ResultFolder(path, owner).write(SWEEP, text)
            log = Journal(path / journal.NAME)
        except OSError as problem:
            raise UserError(
                f"sweep: {str(path)!r} cannot be written ({problem.strerror or problem}); choose another --output"
            ) from None
        stack.callback(log.close)
        _hand_over(owner, [*missing, path, *path.iterdir()])
        yield SweepFolder(path, log)


def _refuse_others(path: Path) -> None:
    if path.exists() and not (path / SWEEP).exists() and any(path.iterdir()):
        raise UserError(f"sweep: {str(path)!r} holds something else; choose another --output or another name")


def _hand_over(owner: Owner | None, paths: Iterable[Path]) -> None:
    """Run by sudo, everything belongs to the user who called sudo; the runs' folders see to themselves."""
    if owner is not None:
        for path in paths:
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with this process and that no child inherits (fcntl, POSIX record locks)."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"sweep: another process is at work in {str(path.parent)!r}; wait for its end") from None
        yield
    finally:
        os.close(descriptor)
