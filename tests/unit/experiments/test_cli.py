"""The command line, in this process: what it prints, what it hands on, and what it refuses in one line."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import typer.main
import yaml

from endpoints.impairments.registry import impairments
from experiments import cli
from experiments.algorithms import algorithms
from experiments.ledger import Ledger
from experiments.results import PlatformInfo, Skipped, Summary
from experiments.scenario import Scenario
from tests.unit.conftest import Ran, Treecast
from topo.platform import MODULES, PROGRAMS, REQUIRED_FEATURES, Facts, Platform, choose
from topo.registry import topologies

EVERYTHING = Facts(
    root=True,
    programs=frozenset(need.name for need in PROGRAMS),
    modules=frozenset(need.name for need in MODULES),
    features={"veth": True, "htb": True, "openvswitch": False, "netem": False},
    versions={"kernel": "6.1.0-42-amd64", "ovs": "3.1.0"},
)

MANY_OPTIONS = tuple(
    shlex.split("""
        --topo leafspine,leaves=2,spines=2,hosts=4 --bw 56G --scale 1000 --size 64KiB --mtu 1024 --delay 1us --queue 50
        --algorithm mcast_broadcast,mcast_allgather --iterations 5 --warmup 0 --seed 7 --trees 2 --chains 3
        --send-batch 4 --rq-depth 256 --cutoff deadline --loss 1% --reorder 5% --duplicate 0.001% --corrupt 0.1%
        --impair drop:rx:h3,0:psn=17,40-60 --impair delay:tx::2.5% --capture h1,s0-l1 --name many
    """)
)


COMMANDS = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]  # it is a group


def test_without_arguments_it_explains_itself(treecast: Treecast) -> None:
    shown = treecast()
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == treecast("--help").out


def test_the_help_lists_every_command_with_a_whole_sentence(treecast: Treecast) -> None:
    lines = treecast("--help").out.splitlines()
    for name in COMMANDS:
        (line,) = [line for line in lines if re.match(rf" +{name} ", line)]
        assert line.endswith(".")
        assert not line.endswith("...")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_describes_it_and_every_option(treecast: Treecast, name: str) -> None:
    shown = treecast(name, "--help")
    assert (shown.code, shown.err) == (0, "")
    words = " ".join(shown.out.split())
    assert COMMANDS[name].help
    for parameter in COMMANDS[name].params:
        assert parameter.help, parameter.name
        assert " ".join(parameter.help.split()) in words
        assert all(option in words for option in parameter.opts if option.startswith("-"))


def test_every_field_of_a_scenario_is_an_option_or_for_files_alone() -> None:
    for_files_alone = {
        "shaped_bps", "slack_chunks", "op_bits", "peer_timeout_ns", "op_timeout_ns", "op_timeout_scaling", "delay",
        "delay_ns", "expect",
    }  # fmt: skip
    options = {option for parameter in COMMANDS["run"].params for option in parameter.opts}
    from experiments.inputs import OPTIONS

    for field in Scenario.model_fields.keys() - for_files_alone:
        assert OPTIONS.get(field, "--" + field.replace("_", "-")) in options


def test_a_dry_run_prints_what_all_options_mean(treecast: Treecast) -> None:
    scenario = treecast("run", "--dry-run", *MANY_OPTIONS).scenario
    assert scenario == json.loads(Scenario.of(scenario).model_dump_json())
    assert (scenario["rate_bps"], scenario["shaped_bps"], scenario["size_bytes"]) == (56_000_000_000, 56_000_000, 65536)
    assert (scenario["loss"], scenario["duplicate"], scenario["link_delay_ns"]) == (0.01, 1e-05, 1000)
    assert scenario["algorithms"] == ["mcast_broadcast", "mcast_allgather"]
    assert scenario["capture"] == ["h1", "l1-s0"]
    drop, delay = scenario["impairments"]
    assert (drop["hosts"], drop["psns"], drop["probability"]) == (["h3", "h1"], [17, [40, 60]], None)
    assert (delay["hosts"], delay["direction"], delay["probability"]) == ([], "tx", 0.025)
    assert scenario.keys() == Scenario.model_fields.keys()


@pytest.mark.parametrize("options", [(), MANY_OPTIONS])
def test_what_a_dry_run_prints_is_a_scenario_that_means_the_same(
    treecast: Treecast, tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = tmp_path / "scenario.yaml"
    printed = treecast("run", "--dry-run", *options).out
    file.write_text(printed)
    assert treecast("run", file, "--dry-run").out == printed


@pytest.mark.parametrize("options", [(), MANY_OPTIONS])
def test_a_summary_is_a_scenario_that_repeats_the_run(
    treecast: Treecast, tmp_path: Path, options: tuple[str, ...]
) -> None:
    printed = treecast("run", "--dry-run", *options).out
    info = PlatformInfo(kernel="6.1.0", datapath="user")
    summary = Summary(scenario=Scenario.of(yaml.safe_load(printed)), platform=info, runs=[])
    (tmp_path / "summary.json").write_text(summary.to_json())
    assert treecast("run", tmp_path / "summary.json", "--dry-run").out == printed


def test_options_overrule_the_file_and_the_rest_follows(treecast: Treecast, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(treecast("run", "--dry-run", "--bw", "50M", "--seed", "3").out)
    scenario = treecast("run", file, "--dry-run", "--bw", "20M").scenario
    assert (scenario["rate_bps"], scenario["shaped_bps"], scenario["seed"]) == (20_000_000, 20_000_000, 3)


def test_a_file_in_yaml_may_name_ranks_as_numbers_and_psns_as_text(treecast: Treecast, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text('capture: [3, h1]\nimpairments: [{kind: drop, hosts: 2, psns: "17,40-60"}]\n')
    scenario = treecast("run", file, "--dry-run").scenario
    assert scenario["capture"] == ["h4", "h1"]
    assert (scenario["impairments"][0]["hosts"], scenario["impairments"][0]["psns"]) == (["h3"], [17, [40, 60]])


def test_an_input_file_decides_the_size_unless_one_is_given(treecast: Treecast, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(bytes(100))

    def size(*options: str) -> int:
        return int(
            treecast("run", "--dry-run", "--input", file, "--topo", "single,hosts=3", *options).scenario["size_bytes"]
        )

    assert size() == 34
    assert size("--algorithm", "mcast_broadcast") == 100
    assert size("--algorithm", "ring_reduce_scatter") == 12
    assert size("--size", "10") == 10


REFUSED = [
    (("--topo", "fattree,k=3"), "--topo: fattree: k=3 is odd"),
    (("--bw", "0"), "--bw '0': must be above 0"),
    (("--mtu", "huge"), "--mtu 'huge': must be a whole number"),
    (("--trees", "21"), "--trees '21': must be at most 20"),
    (("--scale", "nan"), "--scale 'nan': must be a finite number"),
    (("--delay", "100ns"), "--delay 100 ns: with scale 1 links have 100 ns; what can be emulated is from 1 us to 10 s"),
    (("--delay", "11s"), "--delay 11 s"),
    (("--name", "a/b"), "--name 'a/b'"),
    (("--input", ""), "--input ''"),
    (("--input", "/nowhere/file"), "--input '/nowhere/file': No such file"),
    (("--impair", "drop"), "--impair 'drop': write KIND:rx|tx:HOSTS:PROBABILITY"),
    (("--impair", "drop:rx:h1:5%:x"), "write KIND:rx|tx:HOSTS:PROBABILITY"),
    (("--impair", "melt:rx:h1:5%"), "unknown impairment 'melt', known are corrupt"),
    (("--impair", "drop:up:h1:5%"), "direction 'up'"),
    (("--impair", "drop:rx:h1:5"), "--impair 'drop:rx:h1:5': probability '5': write a percentage"),
    (("--impair", "drop:rx:h1:psn=x"), "--impair 'drop:rx:h1:psn=x': PSNs 'x'"),
    (("--impair", "drop:rx:h1:psn=9-3"), "PSNs 9-3: from 0 to 16777215, the lower first"),
    (("--impair", "drop:rx:h1:psn=16777216"), "from 0 to 16777215"),
    (("--impair", "drop:rx:h17:5%"), "--impair drop 'h17': no such host"),
    (("--capture", "h1,h17"), "--capture 'h17': no such host"),
    (("--bogus",), "No such option: --bogus"),
    (("--topo",), "'--topo' requires an argument"),
    (("one.yaml", "two.yaml"), "unexpected extra argument"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_wrong_input_is_refused_in_one_line_that_names_the_option(
    treecast: Treecast, arguments: tuple[str, ...], words: str
) -> None:
    treecast.starts_nothing()
    refused = treecast("run", *arguments)
    assert refused.code == 2
    assert words in refused.complaint


def test_an_unknown_command_is_refused(treecast: Treecast) -> None:
    refused = treecast("walk")
    assert refused.code == 2
    assert "'walk'" in refused.complaint


FILES = [
    ("", "holds no keys and values"),
    ("- topology", "holds no keys and values"),
    ("scenario: 5", "holds no keys and values"),
    ("mtu: 4096\nseed: [", "scenario.yaml', line 2: not YAML"),
    ("a: b: c", "line 1: not YAML: mapping values are not allowed here"),
    ("x: !!python/object/apply:os.abort []", "not YAML"),
    ("[" * 5000, "not YAML"),
    ("speed: 5", "scenario has no 'speed': known are name, topology"),
    ("topology: torus", "topology: unknown topology 'torus': known are"),
    ("input: [1]", "input [1]: must be text"),
    ("size_bytes: null", "size_bytes None: must be a whole number"),
    ("impairments: drop", "impairments 'drop': must be a list"),
    ("impairments: [drop]", "impairments.0 'drop': must be a set of keys and values"),
    ("impairments: [{kind: melt, probability: 1%}]", "unknown impairment 'melt'"),
    ("impairments: [{kind: drop, psns: [1], time_ns: 5}]", "drop: time_ns 5: it takes no time"),
    ("impairments: [{kind: drop, psns: [-1]}]", "from 0 to 16777215"),
    ('{"version": 2, "scenario": {}}', "version 2; this program reads version 1"),
    ("\0", "not YAML"),
]


@pytest.mark.parametrize(("text", "words"), FILES, ids=[text[:40] for text, _ in FILES])
def test_a_wrong_file_is_refused_in_one_line(treecast: Treecast, tmp_path: Path, text: str, words: str) -> None:
    treecast.starts_nothing()
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    refused = treecast("run", file)
    assert refused.code == 2
    assert words in refused.complaint


def test_a_file_that_is_no_text_or_not_there_is_refused_with_its_name(treecast: Treecast, tmp_path: Path) -> None:
    (tmp_path / "scenario").write_bytes(b"\xff\xfe")
    for file in (tmp_path / "scenario", tmp_path, tmp_path / "nothing"):
        refused = treecast("run", file)
        assert refused.code == 2
        assert f"{str(file)!r}: " in refused.complaint


def lacking(*names: str) -> Facts:
    return replace(EVERYTHING, programs=EVERYTHING.programs - set(names))


LACKING = [
    (EVERYTHING, "--delay=5ms", "--delay 5 ms: this kernel has no netem"),
    (
        lacking("ovs-vswitchd", "ovs-vsctl", "mnexec"),
        "",
        (
            "missing: ovs-vswitchd (the switches), ovs-vsctl (making bridges), mnexec (hosts in namespaces); "
            "apt-get install openvswitch-switch mininet"
        ),
    ),
    (
        replace(EVERYTHING, features={"veth": True, "htb": False}, modules=EVERYTHING.modules - {"ryu"}),
        "",
        (
            "missing: ryu (the controller), kernel feature htb (link rates); get .venv (make setup) and "
            "a stock kernel (Debian: linux-image-amd64)"
        ),
    ),
    (
        replace(EVERYTHING, features={"veth": False}, versions={"kernel": "6.8.0-31-generic"}),
        "",
        "missing: kernel feature veth (virtual links); apt-get install linux-modules-extra-6.8.0-31-generic",
    ),
]


@pytest.mark.parametrize(("facts", "option", "words"), LACKING, ids=[words[:50] for _, _, words in LACKING])
def test_what_the_machine_lacks_is_told_in_one_line_before_anything_is_made(
    treecast: Treecast, tmp_path: Path, facts: Facts, option: str, words: str
) -> None:
    treecast.on(facts)
    treecast.starts_nothing()
    refused = treecast("run", *option.split(), "--output", tmp_path / "results")
    assert refused.code == 3
    assert refused.complaint.startswith(words)
    assert not list(tmp_path.iterdir())


def test_without_root_a_run_is_wrong_usage_and_makes_nothing(treecast: Treecast, tmp_path: Path) -> None:
    treecast.on(replace(EVERYTHING, root=False))
    treecast.starts_nothing()
    refused = treecast("run", "--output", tmp_path / "results")
    assert refused.code == 2
    assert refused.complaint.startswith("run: network namespaces need root")
    assert not list(tmp_path.iterdir())


def test_a_result_folder_that_cannot_be_made_is_wrong_input(treecast: Treecast, tmp_path: Path) -> None:
    treecast.on(EVERYTHING)
    treecast.starts_nothing()
    (tmp_path / "file").write_text("")
    refused = treecast("run", "--output", tmp_path / "file")
    assert refused.code == 2
    assert "--output" in refused.complaint


def doctors(treecast: Treecast, facts: Facts) -> tuple[Ran, Platform]:
    treecast.on(facts)
    return treecast("doctor"), choose(facts)


def test_the_doctor_shows_what_is_found_used_and_missing(treecast: Treecast) -> None:
    shown, platform = doctors(treecast, lacking("ping"))
    assert (shown.code, shown.err) == (0, "")
    for line in (
        "found: ovs 3.1.0",
        "kernel feature htb: works",
        "kernel feature netem: not here",
        "kernel feature ifb: not tried",
        "used: Open vSwitch's userspace datapath",
        "used: endpoints (this kernel has no netem) for delays",
        *(f"missing: {missing}" for missing in platform.missing),
        "ready",
    ):
        assert line in shown.out.splitlines()
    assert "iputils-ping" in shown.out


def test_the_doctor_prefers_what_the_kernel_has(treecast: Treecast) -> None:
    facts = replace(EVERYTHING, features=dict.fromkeys((*REQUIRED_FEATURES, "openvswitch", "netem"), True))
    lines = doctors(treecast, facts)[0].out.splitlines()
    assert {"used: Open vSwitch's kernel datapath", "used: netem for delays"} <= set(lines)


def test_the_doctor_ends_with_3_where_no_run_is_possible(treecast: Treecast) -> None:
    shown, _ = doctors(treecast, lacking("ovs-vswitchd"))
    assert shown.code == 3
    assert (
        shown.out.splitlines()[-1]
        == "not ready: missing: ovs-vswitchd (the switches); apt-get install openvswitch-switch"
    )


def test_the_doctor_speaks_json(treecast: Treecast) -> None:
    treecast.on(lacking("ovs-vswitchd"))
    shown = treecast("doctor", "--json")
    assert shown.code == 3
    found = json.loads(shown.out)
    assert (found["datapath"], found["delay"], found["blockers"]) == ("user", None, ["ovs-vswitchd"])
    assert found["missing"][0]["package"] == "openvswitch-switch"


def test_the_registries_are_listed_with_parameters_and_summaries(treecast: Treecast) -> None:
    lines = treecast("topologies").out.splitlines()
    for entry, line in zip(topologies().values(), lines, strict=True):
        assert line.startswith(entry.name)
        assert entry.summary in line
        assert all(f"{name}={default}" in line for name, default in entry.parameters.items())
    for command, summaries in (
        ("algorithms", {name: entry.summary for name, entry in algorithms().items()}),
        ("impairments", {name: entry.summary for name, entry in impairments().items()}),
    ):
        lines = treecast(command).out.splitlines()
        for (name, summary), line in zip(summaries.items(), lines, strict=True):
            assert line.split()[0] == name
            assert summary in line


def test_cleaning_says_what_it_did_and_needs_root_for_it(treecast: Treecast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "clean", lambda _: ([], 0))
    assert treecast("clean").out == "nothing to clean\n"
    monkeypatch.setattr(Ledger, "clean", lambda _: (["removed what run 7 left"], 1))
    assert treecast("clean").out == "removed what run 7 left\n1 live runs left alone\n"

    def forbidden(_: Ledger) -> NoReturn:
        raise PermissionError

    monkeypatch.setattr(Ledger, "clean", forbidden)
    refused = treecast("clean")
    assert refused.code == 2
    assert "belongs to root" in refused.complaint


def test_a_comparison_is_of_all_allgathers_unless_told_otherwise(treecast: Treecast, tmp_path: Path) -> None:
    def names(kind: str) -> list[str]:
        return [entry.name for entry in algorithms().values() if entry.kind == kind]

    usual = treecast("compare", "--dry-run").scenario
    assert (usual["algorithms"], usual["iterations"], usual["name"]) == (names("allgather"), 3, "compare")
    assert treecast("compare", "--dry-run", "--kind", "broadcast").scenario["algorithms"] == names("broadcast")
    adding = treecast("compare", "--dry-run", "--kind", "reduce_scatter").scenario["algorithms"]
    assert adding == names("reduce_scatter") == ["ring_reduce_scatter", "openmpi_reduce_scatter"]
    two = "mcast_allgather,openmpi_allgather"
    assert treecast("compare", "--dry-run", "--algorithm", two).scenario["algorithms"] == two.split(",")
    file = tmp_path / "mine.yaml"
    file.write_text(f"algorithms: {two}\niterations: 7\n")
    mine = treecast("compare", file, "--dry-run", "--size", "64KiB").scenario
    assert (mine["algorithms"], mine["iterations"], mine["size_bytes"]) == (two.split(","), 7, 65536)


def test_a_comparison_is_printed_again_from_its_results_alone(treecast: Treecast, tmp_path: Path) -> None:
    treecast.starts_nothing()
    results = Summary(
        scenario=Scenario.of({"algorithms": "openmpi_allgather"}),
        platform=PlatformInfo(kernel="6.1.0", datapath="user"),
        runs=[],
        skipped=[Skipped(algorithm="openmpi_allgather", reason="it is not here")],
    )
    (tmp_path / "summary.json").write_text(results.to_json())
    for place in (tmp_path, tmp_path / "summary.json"):
        shown = treecast("compare", place)
        assert (shown.code, shown.err) == (0, "")
        assert "openmpi_allgather: skipped, it is not here" in shown.out
    [row] = json.loads(treecast("compare", tmp_path, "--json").out)
    assert (row["algorithm"], row["status"], row["note"]) == ("openmpi_allgather", "skipped", "it is not here")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--kind", "gather"), "--kind 'gather': write allgather or broadcast"),
        (("--kind", "broadcast", "--algorithm", "mcast_broadcast"), "--kind and --algorithm: give one of them"),
        (("nowhere/summary.json",), "compare 'nowhere/summary.json': summary.json cannot be read"),
        (("--bw", "0"), "--bw"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_refused_in_one_line(
    treecast: Treecast, arguments: tuple[str, ...], complaint: str
) -> None:
    treecast.starts_nothing()
    refused = treecast("compare", *arguments)
    assert refused.code == 2
    assert refused.complaint.startswith(complaint)
