"""``treecast impairments``."""

from __future__ import annotations

import sys


def command() -> None:
    """List the kinds of fault that --impair injects."""
    from endpoints.impairments.registry import impairments as known

    for entry in known().values():
        sys.stdout.write(f"{entry.name:<20} {entry.summary}\n")
