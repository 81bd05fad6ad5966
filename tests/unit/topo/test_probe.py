"""The look at the machine, where much of it is hidden; a whole machine is probed in tests/e2e."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from topo.platform import FEATURES, PROGRAMS
from topo.probe import probe


def test_with_an_empty_path_each_program_is_one_missing_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    platform = probe()
    assert {m.what for m in platform.missing} >= {need.name for need in PROGRAMS}
    assert len({m.what for m in platform.missing}) == len(platform.missing)
    assert len(platform.untried) == 1
    assert platform.datapath == "user"


def test_without_root_the_kernel_is_not_tried_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    platform = probe()
    assert not platform.root
    assert set(platform.features) == set(FEATURES)
    assert set(platform.features.values()) == {None}
    assert platform.untried == ("kernel features were not tried: that needs root",)


def test_programs_that_answer_nonsense_have_an_unknown_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert probe().versions["tc"] == "unknown"


def test_a_refused_namespace_is_no_verdict_on_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in {"unshare": "echo unshare: not permitted >&2; exit 1", "ip": "", "tc": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    platform = probe()
    assert set(platform.features.values()) == {None}
    assert platform.untried == ("kernel features were not tried: unshare: not permitted",)
