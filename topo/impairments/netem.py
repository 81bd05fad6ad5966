"""The lines that make netem the queue of an ifb."""

from __future__ import annotations

from collections.abc import Callable

LIMIT_PACKETS = 100_000


def netem(options: str) -> Callable[[str], tuple[str, ...]]:
    """What :class:`topo.impairments.forms.Divert` takes as ``queues``."""
    return lambda ifb: (f"qdisc add dev {ifb} root handle 1: netem {options} limit {LIMIT_PACKETS}",)


def percent(share: float) -> str:
    """A share as tc takes it."""
    return f"{share * 100:.9g}%"
