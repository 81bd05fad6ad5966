"""How a bench says whether what it measured is what was asked for."""

from __future__ import annotations


def judged(target: str, measured: str, *, met: bool) -> str:
    """The line of one target, in words, and of what was measured."""
    return f"target: {target}: {'met' if met else 'missed'} ({measured})"
