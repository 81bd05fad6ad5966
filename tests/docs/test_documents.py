"""README and CONTRIBUTING say what is true: their commands parse, their links lead somewhere, their examples work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.dom.minidom
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
import yaml
from rich.table import Table

from experiments import cli
from experiments.comparison_table import comparison_table
from experiments.inputs import resolve
from experiments.results import PlatformInfo, Summary
from experiments.scenario import Scenario
from experiments.sweep.grid import grid_of
from experiments.ui import summary_table
from topo.registry import parse_topology

ROOT = Path(__file__).parents[2]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
DOCUMENTS = (README, CONTRIBUTING)

any_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the paragraph before it."""

    language: str
    text: str
    before: str


def blocks(document: Path) -> list[Block]:
    parts = re.split(r"^```(\w*)\n(.*?)^```$", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [
        Block(language, text, before.strip().rpartition("\n\n")[2])
        for before, language, text in zip(parts[0::3], parts[1::3], parts[2::3], strict=False)
    ]


def lines_for_a_shell(document: Path) -> list[str]:
    """Every command line, in shell blocks and in the text, without prompt, comment, sudo and the path to .venv."""
    lines = []
    for block in blocks(document):
        if block.language == "sh":
            lines += block.text.splitlines()
        if block.language == "console":
            lines += [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    prose = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"`((?:treecast|make) [^`]+)`", prose)
    plain = (re.sub(r"\s+#.*", "", line).removeprefix("sudo ").removeprefix(".venv/bin/") for line in lines)
    return [line for line in dict.fromkeys(plain) if line]


def commands(document: Path, program: str) -> list[list[str]]:
    """The arguments of each command line of ``program``."""
    return [shlex.split(line)[1:] for line in lines_for_a_shell(document) if line.split()[0] == program]


def ids(arguments: list[str]) -> str:
    return " ".join(arguments)


def test_every_command_line_is_of_a_program_that_these_tests_know() -> None:
    for document in DOCUMENTS:
        programs = {line.split()[0] for line in lines_for_a_shell(document)}
        assert programs <= {"treecast", "make", "mn", "wireshark", "tshark"}


def yaml_files() -> dict[str, str]:
    """The README's files by the names that the text before them gives."""
    found = [block for block in blocks(README) if block.language == "yaml"]
    return {re.findall(r"`(\w+\.yaml)`", block.before)[-1]: block.text for block in found}


def test_the_sweep_of_the_readme_is_one() -> None:
    grid = grid_of(yaml.safe_load(yaml_files()["losses.yaml"]), "losses")
    assert len(grid.points) == 3 * 3 * 6


def test_every_ready_sweep_and_scenario_is_one() -> None:
    files = sorted((ROOT / "experiments/scenarios").glob("*.yaml"))
    assert [file.stem for file in files] == ["lossy-links", "paper"]
    for file in files:
        values = yaml.safe_load(file.read_text())
        assert grid_of(values, file.stem).points if "vary" in values else resolve(Path(file.stem), {})


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README's commands name."""
    for name, text in yaml_files().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "weights.bin").write_bytes(bytes(100_000))
    results = tmp_path / "results/latest"
    results.mkdir(parents=True)
    summary = Summary(
        scenario=Scenario.of({"seed": 5}), platform=PlatformInfo(kernel="6.1.0", datapath="user"), runs=[]
    )
    (results / "summary.json").write_text(summary.to_json())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", commands(README, "treecast"), ids=ids)
def test_a_treecast_command_of_the_readme_is_understood(
    arguments: list[str], workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *rest = arguments
    if name != "run":
        command = typer.main.get_command(cli.app).commands[name]  # type: ignore[attr-defined]  # it is a group
        command.make_context(name, rest)
        return
    monkeypatch.setattr("sys.argv", ["treecast", *arguments, *(() if "--dry-run" in rest else ("--dry-run",))])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert Scenario.of(yaml.safe_load(said.out)).ranks > 1


@pytest.mark.parametrize("arguments", [a for d in DOCUMENTS for a in commands(d, "make")], ids=ids)
def test_a_make_command_names_a_target_and_variables_that_exist(arguments: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for word in arguments:
        name, equals, _ = word.partition("=")
        assert not equals or re.search(rf"\$[({{]+{name}\b|^export .*\b{name}\b", makefile, re.MULTILINE), name
    plan = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert plan.returncode == 0, plan.stderr


@any_document
def test_links_lead_to_files_that_exist(document: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", document.read_text())
    assert links
    for link in links:
        if not link.startswith("https://"):
            assert (document.parent / link.partition("#")[0]).exists(), link


def test_the_picture_shows_every_node_of_the_fabric() -> None:
    drawing = xml.dom.minidom.parse(str(ROOT / "docs/fattree.svg"))
    words = {child.toxml() for text in drawing.getElementsByTagName("text") for child in text.childNodes}
    fabric = parse_topology("fattree,k=4")
    assert {*fabric.host, *fabric.switch} <= words
    lines = drawing.getElementsByTagName("line")
    assert len(lines) == len(fabric.links) + 1, "every link, and one in the legend"


@pytest.mark.parametrize(
    ("command", "table"),
    [("run", summary_table), ("compare", lambda summary: comparison_table(summary, []))],
    ids=["run", "compare"],
)
def test_a_result_in_the_readme_has_the_columns_of_the_table(command: str, table: Callable[[Summary], Table]) -> None:
    begin = f"$ sudo .venv/bin/treecast {command} "
    (result,) = [b.text for b in blocks(README) if b.language == "console" and b.text.startswith(begin)]
    summary = Summary(scenario=Scenario(), platform=PlatformInfo(kernel="6.1.0", datapath="user"), runs=[])
    for column in table(summary).columns:
        assert all(line in result for line in str(column.header).splitlines())


# -- the examples of CONTRIBUTING ---------------------------------------------------------------------------------


def examples() -> dict[str, str]:
    """Text by path: each block of Python stands behind the path of its file."""
    found = {}
    for block in blocks(CONTRIBUTING):
        if block.language == "python":
            (path,) = re.findall(r"`([\w/]+\.py)`:$", block.before)
            found[path] = block.text
    return found


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the examples in it."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("topo", "controller", "endpoints", "experiments", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path, text in examples().items():
        assert not (copy / path).exists(), "an example is new"
        (copy / path).write_text(text)
    return copy


def python(checkout: Path, *arguments: str) -> str:
    """What Python says in a checkout; it must end well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_an_example_for_each_kind_of_addition() -> None:
    assert sorted(str(Path(path).parent) for path in examples()) == [
        "endpoints/collectives",
        "endpoints/impairments",
        "topo/fabrics",
    ]


def test_each_example_is_listed_by_the_command(extended: Path) -> None:
    for path in examples():
        listing = {"fabrics": "topologies", "collectives": "algorithms", "impairments": "impairments"}
        said = python(extended, "-m", "experiments.cli", listing[Path(path).parent.name])
        assert re.search(rf"^{Path(path).stem}\b", said, re.MULTILINE)


@pytest.mark.parametrize("arguments", [a for a in commands(CONTRIBUTING, "treecast") if a[0] == "run"], ids=ids)
def test_a_treecast_command_of_contributing_is_understood_with_the_examples(
    extended: Path, arguments: list[str]
) -> None:
    assert python(extended, "-m", "experiments.cli", *arguments, "--dry-run")


def test_the_examples_pass_the_conformance_tests(extended: Path) -> None:
    names = [Path(path).stem for path in examples()]
    said = python(
        extended, "-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/conformance", "-k", " or ".join(names)
    )
    for name in names:
        assert len(re.findall(rf"\[.*{name}.*\] PASSED", said)) >= 5, "the tests that walk its registry have found it"


def test_the_examples_are_in_the_style_of_the_rest(extended: Path) -> None:
    python(extended, "-m", "ruff", "check", "--no-cache", *examples())
    python(extended, "-m", "ruff", "format", "--no-cache", "--check", *examples())
