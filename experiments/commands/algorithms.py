"""``treecast algorithms``."""

from __future__ import annotations

import sys


def command() -> None:
    """List the collective algorithms."""
    from endpoints.collectives.registry import collectives

    for entry in collectives().values():
        sys.stdout.write(f"{entry.name:<20} {entry.kind:<10} {entry.summary}\n")
