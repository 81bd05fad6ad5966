"""What the kernel counted for an impairment, from ``tc -s -j qdisc show`` and ``/proc/net/dev``. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from topo.counters import Counters, parse_proc_net_dev
from topo.impairments.forms import Divert, Drop
from topo.impairments.model import Observed
from topo.impairments.port import Placed
from topo.impairments.registry import kind

QUEUE = "10:"
"""The handle of the link's own queue (``topo.shaping``)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One namespace: frames that each queue has dropped and that wait in it, by (interface, handle); interfaces."""

    dropped: Mapping[tuple[str, str], int]
    waiting: Mapping[tuple[str, str], int]
    interfaces: Mapping[str, Counters]

    def empty(self, ifb: str) -> bool:
        """Whether all that has entered an ifb has left it; what was not redirected to it ends there as dropped."""
        seen = self.interfaces.get(ifb, Counters())
        return not self.waiting.get((ifb, "1:"), 0) and seen.rx_packets == seen.tx_packets + seen.rx_dropped

    def queued(self, interface: str) -> int:
        """Frames that ever came to the link's own queue, those that found it full included."""
        seen = self.interfaces.get(interface, Counters())
        return seen.tx_packets + seen.tx_dropped + self.dropped.get((interface, QUEUE), 0)

    def observed(self, placed: Placed, before: Reading) -> Observed:
        """What one impairment has done since ``before``, when it was not there."""
        struck, lost = self._counted(placed)
        return Observed(
            placed.name,
            placed.impairment,
            placed.way.mechanism,
            placed.way.seeded,
            kind(placed.impairment.kind).effect,
            struck,
            lost,
            self.queued(placed.interface) - before.queued(placed.interface),
        )

    def _counted(self, placed: Placed) -> tuple[int, int]:
        form = placed.form
        if isinstance(form, Drop):
            return self.dropped.get((placed.interface, f"{placed.number:x}:"), 0), 0
        if isinstance(form, Divert):
            dropped = self.dropped.get((placed.ifb, "1:"), 0)
            if form.counts == "drops":
                return dropped, 0
            return self.interfaces.get(placed.ifb, Counters()).tx_packets // form.copies, dropped
        return 0, 0


NOTHING = Reading({}, {}, {})


def parse_reading(qdiscs: str, devices: str) -> Reading:
    """Of the two reports."""
    entries = [entry for entry in json.loads(qdiscs or "[]") if "handle" in entry]
    return Reading(
        {(entry["dev"], entry["handle"]): entry.get("drops", 0) for entry in entries},
        {(entry["dev"], entry["handle"]): entry.get("qlen", 0) for entry in entries},
        parse_proc_net_dev(devices),
    )
