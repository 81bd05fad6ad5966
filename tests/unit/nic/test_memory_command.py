"""``treecast memory``."""

from __future__ import annotations

import json

import pytest

from tests.unit.conftest import Treecast


def test_the_plan_as_json(treecast: Treecast) -> None:
    shown = treecast("memory", "--ranks", "16", "--size", "1MiB", "--bits-per-chunk", "1", "--json")
    plan = json.loads(shown.out)
    assert (shown.code, plan["rounds"], plan["round_bytes"]) == (0, 1, 1 << 20)
    assert plan["parts"][0]["bytes"] == 16 * 256 // 8
    assert plan["planned_bytes"] == sum(part["bytes"] for part in plan["parts"])
    assert plan["largest_buffers"][-1] == {
        "psn_bits": 24, "buffer_bytes": 1 << 36, "state_bytes": 1 << 21, "bitmap_bytes": 1 << 21,
    }  # fmt: skip


def test_a_table_says_how_it_is_cut(treecast: Treecast) -> None:
    shown = treecast("memory", "--ranks", "2", "--size", "1MiB", "--psn-bits", "8")
    assert shown.code == 0
    assert "2 blocks of 1 MiB: 2 rounds of 512 KiB of each block" in shown.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--memory", "100KiB"), "memory: 102400 bytes of memory, and "),
        (("--algorithm", "nonsense"), "unknown algorithm 'nonsense'"),
        (("--mtu", "1500"), "mtu 1500"),
        (("--away", "3"), "away '3'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(treecast: Treecast, arguments: tuple[str, ...], complaint: str) -> None:
    refused = treecast("memory", *arguments)
    assert refused.code == 2
    assert complaint in refused.complaint
