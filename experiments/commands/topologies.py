"""``treecast topologies``."""

from __future__ import annotations

import sys

SHORT_HELP = "List the topologies."


def command() -> None:
    """List the topologies and their parameters, with the defaults."""
    from topo.registry import topologies as known

    for entry in known().values():
        text = ",".join([entry.name, *(f"{key}={default}" for key, default in entry.parameters.items())])
        sys.stdout.write(f"{text:<36} {entry.summary}\n")
