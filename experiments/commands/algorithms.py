"""``treecast algorithms``."""

from __future__ import annotations

import sys


def command() -> None:
    """List the collective algorithms, external programs' last."""
    from experiments.algorithms import algorithms

    for entry in algorithms().values():
        sys.stdout.write(f"{entry.name:<29} {entry.kind:<10} {entry.summary}\n")
