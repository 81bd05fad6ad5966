"""The journal of a sweep: one line of JSON for each point that is over, on disk before the next one starts.

A line is written by one call and synced. What a kill or a loss of power may leave is a last line that is cut short,
which did not happen: it is dropped, and cut off before the next is written. Anything else that is no record was not
written by us, and is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from experiments.errors import UserError

NAME = "points.jsonl"


class Record(BaseModel):
    """A point that is over.

    ``folder`` is relative to the sweep's, ``seconds`` None where nobody saw how long it took.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    status: Literal["done", "failed"]
    folder: str | None = None
    seconds: float | None = None
    error: str | None = None


def parse(content: bytes, what: str = NAME) -> tuple[list[Record], int]:
    """The records of a journal, and how many of its bytes are whole lines.

    Raises :class:`UserError` for a line, other than one cut short at the end, that is no record.
    """
    records: list[Record] = []
    length = 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            record = Record.model_validate_json(line)
        except ValidationError:
            if number == len(lines):
                break
            raise UserError(f"{what}, line {number}: is no record of a point; remove the line") from None
        if not line.endswith(b"\n"):
            break
        records.append(record)
        length += len(line)
    return records, length


def by_key(records: Iterable[Record]) -> dict[str, Record]:
    """The last word on each point, in the order of the first."""
    return {record.key: record for record in records}


def read(path: Path) -> dict[str, Record]:
    """The records of a journal that somebody else may be writing; none where there is no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    return by_key(parse(content, str(path))[0])


class Journal:
    """A journal that is ours to write."""

    def __init__(self, path: Path) -> None:
        """Open it, or begin it, and cut off a last line that is cut short."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        content = self._file.read()
        records, length = parse(content, str(path))
        if length < len(content):
            self._file.truncate(length)
        os.fsync(descriptor)
        self.records = by_key(records)
        _sync_folder(path.parent)

    def append(self, record: Record) -> None:
        """Write a record; it is on disk when this returns."""
        line = (record.model_dump_json(exclude_none=True) + "\n").encode()
        if self._file.write(line) != len(line):
            raise OSError(f"{self._file.name}: no room for a record")
        os.fsync(self._file.fileno())
        self.records[record.key] = record

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _sync_folder(path: Path) -> None:
    """A new file is found after a loss of power only once its folder is on disk, too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
