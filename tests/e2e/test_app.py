"""A user's program on every host of a real fabric, as the documents have it; and what becomes of one that fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, treecast
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

DOCUMENT = Path(__file__).parents[2] / "docs/nic.md"
OPTIONS = ("--topo", "single,hosts=3", "--workers", "2")

FAILS = """
def main(nic):
    if nic.rank == 1:
        raise ValueError("no such layer")
    data, buffer = nic.allocate(5000), nic.allocate(15000)
    handle = nic.allgather_async(nic.register(data), nic.register(buffer))
    handle.wait()
"""


def test_the_program_of_the_documents_gathers_what_is_right(tmp_path: Path) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "overlap.py").write_text(example)
    done = treecast(tmp_path, "app", str(tmp_path / "overlap.py"), *OPTIONS, "--output", str(tmp_path / "results"))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [f"{host}: right, 4 outstanding" for host in ("h1", "h2", "h3")]


def test_a_program_that_fails_has_its_last_words_told(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    done = treecast(tmp_path, "app", str(tmp_path / "fails.py"), *OPTIONS, "--output", str(tmp_path / "results"))
    assert done.code == 1
    assert "h2" in done.err
    assert "ValueError: no such layer" in done.err
