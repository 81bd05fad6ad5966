"""``treecast`` as a fixture, for tests of its commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from experiments import cli, sandbox
from experiments.ledger import Ledger
from topo import probe
from topo.platform import Facts, choose


class Ran:
    """What a command did: its exit code and its words."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def complaint(self) -> str:
        """The one line that it complained with."""
        assert self.out == ""
        assert re.fullmatch(r"treecast: [^\n]+\n", self.err), self.err
        return self.err.removeprefix("treecast: ").rstrip()

    @property
    def scenario(self) -> dict[str, Any]:
        """The scenario that a dry run has printed."""
        assert (self.code, self.err) == (0, "")
        return dict(yaml.safe_load(self.out))


class Treecast:
    """``treecast …`` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        self._monkeypatch.setattr("sys.argv", ["treecast", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, *self._capsys.readouterr())

    def on(self, facts: Facts) -> None:
        """Pretend a machine."""
        platform = choose(facts)
        self._monkeypatch.setattr(probe, "probe", lambda: platform)
        self._monkeypatch.setattr("os.geteuid", lambda: 0 if facts.root else 1000)

    def starts_nothing(self) -> None:
        """Fail if a run is begun."""

        def begun(*_: object) -> NoReturn:
            raise AssertionError("a run was begun")

        self._monkeypatch.setattr(Ledger, "open_run", begun)
        self._monkeypatch.setattr(sandbox, "run_in_sandbox", begun)


@pytest.fixture
def treecast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Treecast:
    monkeypatch.setenv("COLUMNS", "100")
    return Treecast(monkeypatch, capsys)
