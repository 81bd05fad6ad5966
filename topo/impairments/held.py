"""Holding frames back for a time, with a kernel that has no netem: token buckets in debt.

A class of HTB sends when its bucket is not in debt, and a frame's cost is then taken from it. With a bucket of no size
and a rate at which one frame costs the time wanted, a frame that comes alone would leave at once and the next one late.
So each frame is preceded by a copy of itself (mirred's mirror), which leaves at once, puts the bucket in debt and ends
at the ifb, since ifb drops what was not redirected to it. The frame itself follows when the debt is paid: after exactly
that time. As many classes as needed, chosen by hash, keep frames from waiting for each other.
"""

from __future__ import annotations

import math

from topo.impairments.forms import Divert, Place
from topo.impairments.model import ImpairmentError
from topo.impairments.programs import chance, spread

MOST_CLASSES = 1024
FEWEST_CLASSES = 16
IDLE = 40
"""Classes for each frame that is held at a time. A frame uses its class for twice its time, so that one in twenty finds
it in use and waits longer."""
PATIENCE = 4
"""By how much that may be exceeded before it is refused: one in five then waits longer."""


def held(kind: str, place: Place, share: float, time_us: int, jitter_us: int = 0) -> Divert:
    """A ``share`` of the frames leaves ``time_us`` later, give or take up to ``jitter_us``; or ImpairmentError."""
    frame = place.spec.frame_bytes
    at_once = share * place.spec.rate_bps * time_us / (8e6 * frame)
    wanted = IDLE * at_once
    if wanted > PATIENCE * MOST_CLASSES:
        most = PATIENCE * MOST_CLASSES / IDLE
        raise ImpairmentError(
            f"{kind}: some {at_once:.0f} frames would be held at a time, without netem {most:.0f} at most:"
            f" a smaller share, a shorter time, or at the endpoint (host NAME rx {kind})"
        )
    classes = min(MOST_CLASSES, max(FEWEST_CLASSES, 2 ** math.ceil(math.log2(max(1.0, wanted)))))
    times = [time_us + jitter_us * (2 * (index + 0.5) / classes - 1) for index in range(classes)]
    chooser = spread(classes, place.salt ^ 0x5BD1E995).bytecode

    def queues(ifb: str) -> tuple[str, ...]:
        return (
            f"qdisc add dev {ifb} root handle 1: htb default 1",
            *(_class(ifb, index + 1, frame, time) for index, time in enumerate(times)),
            f"filter add dev {ifb} parent 1: protocol all prio 1 bpf bytecode '{chooser}'",
        )

    return Divert(chance(share, place.salt), queues, primed=True)


def _class(ifb: str, minor: int, frame: int, time_us: float) -> str:
    """A class in which a frame of any length (``mpu``) costs ``time_us``."""
    rate = max(8, round(frame * 8e6 / time_us))
    return (
        f"class add dev {ifb} parent 1: classid 1:{minor:x} htb rate {rate}bit ceil {rate}bit"
        f" burst 1b cburst 1b mpu {frame} quantum {frame}"
    )
