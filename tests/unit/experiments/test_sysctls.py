"""Settings of the whole machine: raised, written down before, and put back unless somebody else has set them since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.errors import EnvironmentMissing
from experiments.sysctls import Sysctls

KNOB = "net.core.wmem_default"
PARAMETER = "sch_htb/htb_hysteresis"


class Machine:
    """A pretended machine: settings in a folder, each with the value that a kernel starts with."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "sysctls.json"
        self._folder = folder
        self.boot = "first"
        self.paths = {
            KNOB: folder / "sys/net/core/wmem_default",
            PARAMETER: folder / "module/sch_htb/parameters/htb_hysteresis",
        }
        for path, value in zip(self.paths.values(), (212992, 0), strict=True):
            path.parent.mkdir(parents=True)
            path.write_text(f"{value}\n")

    @property
    def sysctls(self) -> Sysctls:
        return Sysctls(self.notes, self.boot, self._folder / "sys", self._folder / "module")

    def __getitem__(self, name: str) -> int:
        return int(self.paths[name].read_text())

    def __setitem__(self, name: str, value: int) -> None:
        self.paths[name].write_text(f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(("name", "before", "wanted"), [(KNOB, 212992, 1 << 27), (PARAMETER, 0, 1)])
def test_what_is_too_low_is_raised_written_down_and_put_back(
    machine: Machine, name: str, before: int, wanted: int
) -> None:
    assert machine.sysctls.raise_to({name: wanted}) == {name: wanted}
    assert machine[name] == wanted
    notes = json.loads(machine.notes.read_text())
    assert notes == {"boot": "first", "values": {name: {"original": before, "ours": [wanted]}}}
    assert machine.sysctls.restore() == [f"set {name} back from {wanted} to {before}"]
    assert machine[name] == before
    assert not machine.notes.exists()


def test_what_is_high_enough_is_neither_touched_nor_written_down(machine: Machine) -> None:
    assert machine.sysctls.raise_to({KNOB: 100, PARAMETER: 0}) == {KNOB: 212992, PARAMETER: 0}
    assert not machine.notes.exists()
    assert machine.sysctls.restore() == []


def test_it_is_written_down_before_it_is_changed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def crash(path: Path, *arguments: str, **options: str) -> int:
        if path == machine.paths[KNOB]:
            raise KeyboardInterrupt
        return write(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", crash)
        with pytest.raises(KeyboardInterrupt):
            machine.sysctls.raise_to({KNOB: 1 << 27})
    assert json.loads(machine.notes.read_text())["values"] == {KNOB: {"original": 212992, "ours": [1 << 27]}}
    assert machine.sysctls.restore() == [], "it never changed"


def test_raised_twice_it_goes_back_to_what_it_was_at_first(machine: Machine) -> None:
    machine.sysctls.raise_to({KNOB: 300_000})
    machine.sysctls.raise_to({KNOB: 400_000})
    assert machine.sysctls.raise_to({KNOB: 350_000}) == {KNOB: 400_000}
    assert machine.sysctls.restore() == [f"set {KNOB} back from 400000 to 212992"]


def test_a_value_that_we_gave_earlier_is_ours_still(machine: Machine) -> None:
    machine.sysctls.raise_to({KNOB: 300_000})
    machine.sysctls.raise_to({KNOB: 400_000})
    machine[KNOB] = 300_000
    machine.sysctls.restore()
    assert machine[KNOB] == 212992


def test_somebody_elses_value_stays_and_is_told(machine: Machine) -> None:
    machine.sysctls.raise_to({KNOB: 300_000, PARAMETER: 1})
    machine[KNOB] = 777_777
    assert machine.sysctls.restore() == [
        f"left {KNOB} at 777777: somebody else has changed it since",
        f"set {PARAMETER} back from 1 to 0",
    ]
    assert (machine[KNOB], machine[PARAMETER]) == (777_777, 0)


def test_somebody_elses_value_that_is_raised_is_the_one_to_go_back_to(machine: Machine) -> None:
    machine.sysctls.raise_to({KNOB: 300_000})
    machine[KNOB] = 250_000
    machine.sysctls.raise_to({KNOB: 400_000})
    machine.sysctls.restore()
    assert machine[KNOB] == 250_000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("net.core.no_such", r"^sysctl net\.core\.no_such: this kernel does not have it$"),
        ("sch_htb/no_such", r"^module parameter sch_htb/no_such: this kernel does not have it$"),
        ("no_such/no_such", r"^module parameter no_such/no_such: this kernel does not have it$"),
    ],
)
def test_what_the_kernel_lacks_is_named_and_what_was_raised_before_goes_back(
    machine: Machine, name: str, words: str
) -> None:
    with pytest.raises(EnvironmentMissing, match=words):
        machine.sysctls.raise_to({KNOB: 300_000, name: 1})
    machine.sysctls.restore()
    assert machine[KNOB] == 212992


def test_what_cannot_be_set_is_named_with_its_value_and_the_reason(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def refuse(path: Path, *arguments: str, **options: str) -> int:
        if path == machine.paths[PARAMETER]:
            raise PermissionError(13, "Permission denied")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(
        EnvironmentMissing,
        match=rf"^module parameter {PARAMETER}: cannot be set to 1 \(Permission denied\)$",
    ):
        machine.sysctls.raise_to({PARAMETER: 1})


def test_a_module_that_was_unloaded_since_has_nothing_to_put_back(machine: Machine) -> None:
    machine.sysctls.raise_to({PARAMETER: 1})
    machine.paths[PARAMETER].unlink()
    assert machine.sysctls.restore() == []
    assert not machine.notes.exists()


def test_notes_of_an_earlier_start_of_the_machine_say_nothing(machine: Machine) -> None:
    machine.sysctls.raise_to({KNOB: 300_000})
    machine.boot = "second"
    machine[KNOB] = 212992
    machine.sysctls.raise_to({KNOB: 500_000})
    assert json.loads(machine.notes.read_text())["values"][KNOB]["ours"] == [500_000]
    machine.boot = "third"
    assert machine.sysctls.restore() == []
    assert machine[KNOB] == 500_000


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot": "first"}', '{"boot": "first", "values": {"a": {"b": 1}}}'])
def test_notes_that_were_cut_short_are_forgotten(machine: Machine, text: str) -> None:
    machine.notes.write_text(text)
    assert machine.sysctls.restore() == []
    assert not machine.notes.exists()
