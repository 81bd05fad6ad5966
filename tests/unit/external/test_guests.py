"""External programs in a run: started once, when needed; one that fails is ended and left out, the others stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from experiments.buffers import Buffers
from experiments.data import Data
from experiments.external.registry import External
from experiments.external.site import Measured, Place, ProgramFailed, Site
from experiments.guests import Guests

PLACES = (Place("h1", "10.0.0.2", "h1-eth0", 1), Place("h2", "10.0.0.3", "h2-eth0", 2))


@dataclass
class Scripted:
    """A program that does as its script says, and keeps a diary."""

    script: list[str]
    diary: list[str] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)

    @contextmanager
    def start(self, site: Site) -> Iterator[Scripted]:
        self.sites.append(site)
        if self.script[:1] == ["no start"]:
            raise ProgramFailed("it has no licence")
        self.diary.append("started")
        yield self
        self.diary.append("ended")

    def run(self, data: Sequence[Path], received: Sequence[Path], timeout_s: float) -> Measured:
        del timeout_s
        self.diary.append("ran")
        if self.script.pop(0) == "fail":
            raise ProgramFailed("it fell over")
        whole = b"".join(path.read_bytes() for path in data)
        for path in received:
            path.write_bytes(whole)
        return Measured(0.5, 0.1)

    def entry(self, name: str) -> External:
        return External(name, "allgather", "scripted", self.start, ())


@pytest.fixture
def buffers(tmp_path: Path) -> Buffers:
    made = Buffers(tmp_path / "buffers")
    made.prepare(Scripted([]).entry("any"), Data(1000, 1), len(PLACES))
    return made


def guests(tmp_path: Path, **excused: str) -> Guests:
    return Guests(PLACES, rate_bps=1, mtu=1500, rundir=tmp_path, logs=tmp_path, look=lambda: None, excused=excused)


def test_a_program_is_started_once_has_a_folder_of_its_own_and_ends_with_the_run(
    tmp_path: Path, buffers: Buffers
) -> None:
    program = Scripted(["run", "run"])
    entry = program.entry("one")
    with guests(tmp_path) as ours:
        assert program.diary == []
        for _ in range(2):
            assert ours.ready(entry)
            assert ours.run(entry, buffers, 1.0) == (Measured(0.5, 0.1), None)
            assert buffers.wrong_bytes(entry, Data(1000, 1), len(PLACES)) == 0
            assert buffers.wrong_bytes(entry, Data(1000, 2), len(PLACES)) > 1900, "compared with what was really sent"
    assert program.diary == ["started", "ran", "ran", "ended"]
    [site] = program.sites
    assert site.places == PLACES
    assert site.folder.is_dir()
    assert ours.skipped == {}


def test_what_does_not_start_or_is_excused_is_left_out_for_good(tmp_path: Path) -> None:
    program, excused = Scripted(["no start"]), Scripted(["run"])
    with guests(tmp_path, two="not installed") as ours:
        for _ in range(2):
            assert not ours.ready(program.entry("one"))
            assert not ours.ready(excused.entry("two"))
    assert ours.skipped == {"one": "it has no licence", "two": "not installed"}
    assert len(program.sites) == 1
    assert excused.sites == []


def test_one_that_fails_is_ended_at_once_and_the_others_stay(tmp_path: Path, buffers: Buffers) -> None:
    bad, good = Scripted(["run", "fail"]), Scripted(["run", "run"])
    with guests(tmp_path) as ours:
        for entry in (bad.entry("bad"), good.entry("good")):
            assert ours.ready(entry)
            assert ours.run(entry, buffers, 1.0)[1] is None
        assert ours.run(bad.entry("bad"), buffers, 1.0) == (None, "it fell over")
        assert bad.diary[-1] == "ended"
        assert not ours.ready(bad.entry("bad"))
        assert ours.ready(good.entry("good"))
        assert good.diary == ["started", "ran"]
    assert ours.skipped == {"bad": "it has failed: it fell over"}
