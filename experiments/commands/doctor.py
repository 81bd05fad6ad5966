"""``treecast doctor``: what this machine has."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.errors import EnvironmentMissing

if TYPE_CHECKING:
    from topo.platform import Platform

SHORT_HELP = "Print what is found, used and missing."


def command(*, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Print what this machine has, what will be used, and what is missing with the package that brings it."""
    from topo import probe

    platform = probe.probe()
    if as_json:
        plain = asdict(platform) | {"blockers": [entry.what for entry in platform.blockers]}
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _findings(platform)))
    if platform.blockers:
        raise typer.Exit(EnvironmentMissing.exit_code)


def _findings(platform: Platform) -> Iterator[str]:
    from experiments.launch import cure

    works = {True: "works", False: "not here", None: "not tried"}
    for name, version in platform.versions.items():
        yield f"found: {name} {version}"
    for feature, state in platform.features.items():
        yield f"kernel feature {feature}: {works[state]}"
    for why in platform.untried:
        yield f"not tried: {why}"
    yield f"used: Open vSwitch's {'kernel' if platform.datapath == 'kernel' else 'userspace'} datapath"
    yield "used: HTB for link rates"
    yield f"used: {platform.delay or 'endpoints (this kernel has no netem)'} for delays"
    yield "used: endpoints for loss, reordering, duplication, corruption"
    yield f"used: {platform.accounting} for the CPU time of hosts"
    for entry in platform.missing:
        yield f"missing: {entry}"
    yield "not ready: " + cure(platform.blockers) if platform.blockers else "ready"
