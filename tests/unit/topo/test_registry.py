"""Topologies by name: what is found, and what a wrong request is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from topo.fabric import FabricError
from topo.registry import discover, parse_topology, topologies

PLUGIN = '''
from topo.registry import topology

@topology("{name}")
def make(width: int = 3):
    """A made-up fabric."""
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An empty package of topologies; the test writes modules into its folder."""
    name = "made_up_fabrics"
    module = ModuleType(name)
    module.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, name, module)
    yield module
    for loaded in [m for m in sys.modules if m.startswith(f"{name}.")]:
        del sys.modules[loaded]


def test_the_folder_is_the_registry() -> None:
    files = {p.stem for p in (Path(__file__).parents[3] / "topo" / "fabrics").glob("*.py")} - {"__init__"}
    assert set(topologies()) == files


def test_a_topology_is_found_by_being_there(package: ModuleType) -> None:
    Path(package.__path__[0], "one.py").write_text(PLUGIN.format(name="one"))
    found = discover(package)
    assert found["one"].parameters == {"width": 3}
    assert found["one"].summary == "A made-up fabric."


def test_a_name_claimed_twice_is_refused_with_both_places(package: ModuleType) -> None:
    for module in ("one", "two"):
        Path(package.__path__[0], f"{module}.py").write_text(PLUGIN.format(name="same"))
    with pytest.raises(
        FabricError, match=r"same is defined twice: in made_up_fabrics\.one and in made_up_fabrics\.two"
    ):
        discover(package)


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("fattree", {"k": 4}),
        ("fattree,k=6", {"k": 6}),
        (" leafspine , leaves = 2,hosts=8", {"leaves": 2, "spines": 2, "hosts": 8}),
        ("single,hosts=1", {"hosts": 1}),
    ],
)
def test_parameters_are_read_and_defaults_filled_in(text: str, params: dict[str, int]) -> None:
    assert parse_topology(text).params == params


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("torus,k=4", "unknown topology 'torus': known are fattree, leafspine, single"),
        ("", "unknown topology ''"),
        ("fattree,pods=4", "unknown parameter 'pods', it has (with defaults) k=4"),
        ("fattree,4", "'4' is not of the form parameter=value"),
        ("fattree,k=four", "k='four' is not an integer"),
        ("fattree,k=4.0", "k='4.0' is not an integer"),
        ("fattree,k=", "k='' is not an integer"),
        ("fattree,k=2,k=4", "k is given twice"),
        ("fattree,k=3", "k=3 is odd"),
        ("fattree,k=-3", "k=-3 is odd"),
        ("fattree,k=0", "k=0 is out of range, it must be from 2 to 48"),
        ("fattree,k=50", "k=50 is out of range, it must be from 2 to 48"),
        ("leafspine,hosts=0", "hosts=0 is out of range, it must be from 1 to 253"),
        ("leafspine,leaves=0", "leaves=0 is out of range"),
        ("leafspine,spines=0", "spines=0 is out of range"),
        ("leafspine,hosts=254", "hosts=254 is out of range"),
        ("single,hosts=0", "hosts=0 is out of range"),
    ],
)
def test_a_wrong_request_gets_one_clear_line(text: str, complaint: str) -> None:
    with pytest.raises(FabricError) as refusal:
        parse_topology(text)
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)
