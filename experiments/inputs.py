"""From what a user gave, options and a file, to a scenario; whatever is wrong is a :class:`UserError` that names it.

A file is a scenario in YAML, or a ``summary.json``, whose ``scenario`` repeats the run. Options overrule the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from endpoints.impairments.registry import impairments
from endpoints.impairments.spec import parse_psns
from experiments import units
from experiments.data import block_size, file_size
from experiments.errors import UserError
from experiments.faults.timeline import split_step
from experiments.results import VERSION
from experiments.scenario import Scenario

OPTIONS = {
    "topology": "--topo",
    "rate_bps": "--bw",
    "size_bytes": "--size",
    "algorithms": "--algorithm",
    "link_delay_ns": "--delay",
    "queue_packets": "--queue",
    "impairments": "--impair",
    "faults": "--fault",
    "nic_memory_bytes": "--nic-memory",
}
"""Options that are not called like the field that they set."""

_IMPAIR = "KIND:rx|tx:HOSTS:PROBABILITY or KIND:rx|tx:HOSTS:psn=LIST"
_PSN = "psn="


def parse_impairment(text: str) -> dict[str, Any]:
    """A fault as ``--impair`` writes it, such as ``drop:rx:h3:psn=17,40-60``; no hosts are all hosts."""
    what = f"--impair {text!r}"
    parts = text.split(":")
    if len(parts) != 4:
        raise UserError(f"{what}: write {_IMPAIR}, like drop:rx:h3:5% or drop:rx:h3:psn=17,40-60")
    kind, direction, hosts, which = parts
    if kind not in impairments():
        raise UserError(f"{what}: unknown impairment {kind!r}, known are {', '.join(impairments())}")
    if direction not in {"rx", "tx"}:
        raise UserError(f"{what}: direction {direction!r}, write rx (what hosts receive) or tx (what they send)")
    entry: dict[str, Any] = {"kind": kind, "direction": direction, "hosts": hosts}
    if not which.startswith(_PSN):
        return entry | {"probability": units.parse_probability(which, f"{what}: probability")}
    try:
        return entry | {"psns": parse_psns(which.removeprefix(_PSN))}
    except ValueError as problem:
        raise UserError(f"{what}: {problem}") from None


def parse_timed_fault(text: str) -> dict[str, Any]:
    """A step of the timeline as ``--fault`` writes it, such as ``at 1.5s: link e00-a00 loss 2% for 3s``."""
    try:
        when, words = split_step(text)
    except UserError as problem:
        raise UserError(f"--fault {problem}") from None
    return {"at": when.at_ns, "operation": when.operation, "fault": words}


def ready(file: Path) -> Path:
    """The file, or that of the ready scenario or sweep of that name, which come with the program."""
    known = Path(str(resources.files("experiments") / "scenarios" / f"{file}.yaml"))
    return known if not file.exists() and file.name == str(file) and known.is_file() else file


def resolve(file: Path | None, given: dict[str, Any]) -> Scenario:
    """The scenario of ``file``, with the fields of ``given`` in place of its own; checked against the input file."""
    values = {**(read(ready(file)) if file else {}), **given}
    try:
        return checked(values)
    except UserError as problem:
        raise UserError(_in_options(str(problem), given)) from None


def checked(values: dict[str, Any]) -> Scenario:
    """The scenario that has these fields; where an input file is given and no size, the file decides it."""
    if not values.get("input"):
        return Scenario.of(values)
    asked = Scenario.of(values if "size_bytes" in values else {**values, "size_bytes": 0})
    assert asked.input is not None  # it was given
    size = file_size(Path(asked.input))
    if "size_bytes" in values:
        return asked
    blocks = max(entry.roots(asked.ranks) * entry.does.data_blocks(asked.ranks) for entry in asked.collectives)
    granularity = max(entry.granularity for entry in asked.collectives)
    return Scenario.of({**values, "size_bytes": block_size(size, blocks, granularity)})


def _in_options(message: str, given: Collection[str]) -> str:
    """A complaint about a field, told by the option that set it."""
    field = re.match(r"[a-z_]*", message)
    if field is None or field[0] not in given:
        return message
    name = field[0]
    return OPTIONS.get(name, "--" + name.replace("_", "-")) + message[len(name) :]


def read(file: Path) -> dict[str, Any]:
    """The fields that a file sets."""
    what = f"scenario {str(file)!r}"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as problem:
        raise UserError(f"{what}: {problem.strerror}; give a YAML file or a summary.json") from None
    except UnicodeDecodeError as problem:
        raise UserError(
            f"{what}: byte {problem.start} is no text (UTF-8); give a YAML file or a summary.json"
        ) from None
    values = _parsed(text, what)
    if isinstance(values, dict) and "scenario" in values:
        if (version := values.get("version", VERSION)) != VERSION:
            raise UserError(f"{what}: version {version!r}; this program reads version {VERSION}")
        values = values["scenario"]
    if not isinstance(values, dict):
        raise UserError(f"{what}: holds no keys and values; write lines like `topology: fattree,k=4`")
    return {key: value for key, value in values.items() if key != "shaped_bps"}


def _parsed(text: str, what: str) -> Any:
    """YAML or JSON. JSON is tried first, for to YAML its ``1e-05`` is text."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as problem:
        line = f", line {problem.problem_mark.line + 1}" if problem.problem_mark else ""
        raise UserError(f"{what}{line}: not YAML: {problem.problem or problem.context}") from None
    except (yaml.YAMLError, RecursionError) as problem:
        raise UserError(f"{what}: not YAML: {str(problem).partition(chr(10))[0] or 'nested too deeply'}") from None
