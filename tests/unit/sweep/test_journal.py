"""The journal: whatever a kill leaves of it, the whole lines count and the next one stands on a line of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import UserError
from experiments.sweep.journal import Journal, Record, by_key, parse, read

RECORDS = [
    Record(key="a", status="done", folder="runs/a", seconds=1.5),
    Record(key="b", status="failed", error="ä host died: h3 → h4"),
    Record(key="c", status="done", folder="runs/c"),
]
LATER = Record(key="d", status="done", folder="runs/d", seconds=2)


def written(path: Path, records: list[Record]) -> bytes:
    journal = Journal(path)
    for record in records:
        journal.append(record)
    journal.close()
    return path.read_bytes()


def test_what_is_written_is_read_and_a_reader_needs_no_file(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == {}
    written(tmp_path / "points", RECORDS)
    assert list(read(tmp_path / "points").values()) == RECORDS


def test_torn_at_any_byte_it_holds_the_whole_lines_and_can_be_gone_on_with(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole", RECORDS)
    for length in range(len(whole) + 1):
        lines = whole[:length].count(b"\n")
        torn = tmp_path / f"torn-{length}"
        torn.write_bytes(whole[:length])
        assert list(read(torn).values()) == RECORDS[:lines]
        written(torn, [LATER])
        assert list(read(torn).values()) == [*RECORDS[:lines], LATER]


@pytest.mark.parametrize("rest", [b"\0\0\0\0", b"\xff\xfe\n", b"{}\n", b"\n"])
def test_a_last_line_that_is_no_record_did_not_happen(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "points"
    path.write_bytes(written(path, RECORDS) + rest)
    assert list(read(path).values()) == RECORDS
    assert list(Journal(path).records.values()) == RECORDS


def test_an_earlier_line_that_is_no_record_is_told_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "points"
    path.write_bytes(b'{"key": "a"}\n' + written(path, RECORDS))
    with pytest.raises(UserError, match="points, line 1"):
        Journal(path)


def test_the_last_word_on_a_point_counts() -> None:
    again = Record(key="b", status="done", folder="runs/b2")
    assert by_key([*RECORDS, again])["b"] == again
    assert list(by_key([*RECORDS, again])) == ["a", "b", "c"]


def test_fields_that_a_later_program_has_added_are_no_obstacle() -> None:
    [record], _ = parse(b'{"key": "a", "status": "done", "weather": "fine"}\n')
    assert record == Record(key="a", status="done")
