"""A user's program is a file with a function, which forked processes find by its name."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from experiments.applications import load
from experiments.errors import UserError


def test_its_function_is_found_by_name(tmp_path: Path) -> None:
    file = tmp_path / "step.py"
    file.write_text("def main(nic):\n    return nic\n")
    main = load(file)
    assert pickle.loads(pickle.dumps(main)) is main


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [("step.py", "x = 1", "there is no function main"), ("none.py", None, "no such"), ("step.txt", "", "no such")],
)
def test_what_is_no_program_is_told_in_one_line(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=said):
        load(tmp_path / name)
