"""``treecast memory``."""

from __future__ import annotations

import json

import pytest

from experiments import cli


def treecast(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["treecast", "memory", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_plan_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = treecast(monkeypatch, "--ranks", "16", "--size", "1MiB", "--bits-per-chunk", "1", "--json")
    plan = json.loads(capsys.readouterr().out)
    assert (code, plan["rounds"], plan["round_bytes"]) == (0, 1, 1 << 20)
    assert plan["parts"][0]["bytes"] == 16 * 256 // 8
    assert plan["planned_bytes"] == sum(part["bytes"] for part in plan["parts"])
    assert plan["largest_buffers"][-1] == {
        "psn_bits": 24, "buffer_bytes": 1 << 36, "state_bytes": 1 << 21, "bitmap_bytes": 1 << 21,
    }  # fmt: skip


def test_a_table_says_how_it_is_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = treecast(monkeypatch, "--ranks", "2", "--size", "1MiB", "--psn-bits", "8")
    assert code == 0
    assert "2 blocks of 1 MiB: 2 rounds of 512 KiB of each block" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--memory", "100KiB"), "memory: 102400 bytes of memory, and "),
        (("--algorithm", "nonsense"), "unknown algorithm 'nonsense'"),
        (("--mtu", "1500"), "mtu 1500"),
        (("--away", "3"), "away '3'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    arguments: tuple[str, ...], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert treecast(monkeypatch, *arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err
    assert said.err.count("\n") == 1
