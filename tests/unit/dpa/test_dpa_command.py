"""``treecast dpa``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.conftest import Treecast


def test_half_of_a_bluefield_3_takes_1600_gbps(treecast: Treecast) -> None:
    shown = treecast("dpa", "--json")
    assert shown.code == 0
    found = json.loads(shown.out)["works"]
    for work in (found["UC"], found["UD"]):
        last = work["links"][-1]
        assert (last["link_bps"], last["bps_of_all"]) == (1_600_000_000_000, 1_600_000_000_000)
        assert last["chunks_per_s"] == pytest.approx(48.8e6, rel=1e-3)
        assert last["threads"] <= 128


def test_an_emulated_nic_is_as_fast_as_its_workers(treecast: Treecast) -> None:
    shown = treecast("dpa", "--cost", "4us", "--workers", "2")
    assert shown.code == 0
    assert "16.4 Gbit/s, 0.50 M/s" in shown.out
    assert "more than 2" in shown.out


def test_the_figure_is_drawn_the_same_each_time(treecast: Treecast, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert treecast("dpa", "--figure", tmp_path / name, "--json").code == 0
    one, two = ((tmp_path / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert one == two
    assert b"<svg" in one


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--transport", "rc"), "transport 'rc': known are uc, ud"),
        (("--cost", "4us", "--cycles", "9"), "choose one"),
        (("--cost", "0"), "cost 0"),
        (("--chunk", "0"), "chunk 0"),
        (("--instructions", "7"), "instructions 7"),
        (("--cycles", "5", "--instructions", "7"), "instructions 7"),
        (("--measure", "--chunk", "64"), "chunk 64"),
        (("--figure", "no/such/folder.svg"), "figure 'no/such/folder.svg'"),
        (("--figure", "figure.nonsense"), "figure 'figure.nonsense'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(treecast: Treecast, arguments: tuple[str, ...], complaint: str) -> None:
    refused = treecast("dpa", *arguments)
    assert refused.code == 2
    assert complaint in refused.complaint
