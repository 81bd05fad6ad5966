"""Whether the emulation was true: from what was observed to a verdict with reasons that a person can act on.

The processors are always busy here, so that a busy one proves nothing. What proves something is its effect: frames
that lie unread at a switch which would have forwarded them at once, timers that are served late, frames dropped where
no network would drop them. Each bound stands here once, with its reason. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from experiments.results import Fidelity, Verdict
from experiments.units import format_rate

MEMORY_PER_BYTE = 2.2
"""Socket memory for each byte of a full frame: 9,024 bytes for the 4,166 of a 4 KiB chunk (Linux 6.18)."""

LAG_SHARE = 0.005
"""Part of an operation for which a frame may lie unread at a switch. On two cores an Allgather of 16 hosts had 0.2 % at
50 Mbit/s, where it reaches 0.96 of the limit, 1 to 2.4 % at 100 Mbit/s, where it reaches 0.90, and 20 % at 200."""

LAG_BATCHES = 2
"""Bursts of the endpoints that may lie unread at once, however short the operation: a switch takes what is there when
its turn comes, and senders hand over ``send_batch`` frames at a time."""

PROBE_LOW, PROBE_HIGH = 0.97, 1.03
"""Part of its rate that a link must carry alone, and not exceed; HTB is within half a percent where timers are good."""

RESERVE = 0.7
"""Part of what an overloaded switch carried that a lower rate may ask for. Frames that come singly, as they do when
there is no backlog, cost it more than frames that wait in a row."""

FULL = 0.9
"""Part of a queue, or of the send buffer, from which on it is called full: looks are rare, bursts are not."""

SEVERITY: Sequence[Verdict] = ("valid", "unknown", "overloaded", "invalid")


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of one operation. Times in seconds, frames as counts.

    ``limit_ratio`` is the part of the limit that it took; ``unread_bytes`` the most memory that waited at each port of
    a switch; ``late_s`` by host; drops by interface or host; ``oversleep_s`` what the protocol's timers allow for.
    ``disturbed`` has the hosts that a declared fault stopped or killed, and which: what they did late, and what found
    their receive queues full, is its effect, and no fault of the machine.
    ``down_drops`` has the ends of links that were down, with the drops that were counted there, if only none;
    ``queue_fill`` the parts of links' queues that were full, ``send_buffer_fill`` that of the switches' send buffer.
    ``replaced`` if another ovs-vswitchd took over.
    """

    rate_bps: int
    datapath: str
    seconds: float | None
    limit_ratio: float | None
    burst_s: float
    oversleep_s: float
    unread_bytes: Mapping[str, int] = field(default_factory=dict)
    switch_busy: float | None = None
    host_waited: float = 0.0
    late_s: Mapping[str, float] = field(default_factory=dict)
    disturbed: Mapping[str, str] = field(default_factory=dict)
    socket_drops: Mapping[str, int] = field(default_factory=dict)
    ring_drops: Mapping[str, int] = field(default_factory=dict)
    kernel_drops: Mapping[str, int] = field(default_factory=dict)
    down_drops: Mapping[str, int] = field(default_factory=dict)
    queue_fill: Mapping[str, float] = field(default_factory=dict)
    send_buffer_fill: float = 0.0
    unaccounted: tuple[str, ...] = ()
    replaced: bool = False

    @property
    def lag(self) -> tuple[float, str]:
        """The longest that a link's frames lay unread, in seconds of the link, and the port."""
        port, unread = max(self.unread_bytes.items(), key=lambda item: item[1], default=("", 0))
        return unread / MEMORY_PER_BYTE * 8 / self.rate_bps, port

    @property
    def latest(self) -> tuple[float, str]:
        """The longest that something due waited, and the host, of those that no fault has stopped."""
        judged = {host: late for host, late in self.late_s.items() if host not in self.disturbed}
        host, late = max(judged.items(), key=lambda item: item[1], default=("", 0.0))
        return late, host

    @property
    def fullest(self) -> tuple[float, str]:
        """The most that a link's queue was filled, and its sending interface."""
        port, fill = max(self.queue_fill.items(), key=lambda item: item[1], default=("", 0.0))
        return fill, port

    @property
    def figures(self) -> dict[str, float]:
        """For the result file."""
        figures = {
            "unread_ms": self.lag[0] * 1e3,
            "late_ms": self.latest[0] * 1e3,
            "host_waited": self.host_waited,
            "queue_fill": self.fullest[0],
            "send_buffer_fill": self.send_buffer_fill,
        }
        if self.down_drops:
            figures["down_drops"] = sum(self.down_drops.values())
        if self.switch_busy is not None:
            figures["switch_busy"] = self.switch_busy
        return {name: round(value, 3) for name, value in figures.items()}


def assess(seen: Observed) -> Fidelity:
    """The verdict on one operation."""
    if seen.seconds is None:
        return Fidelity(verdict="unknown", reasons=["the operation did not finish"], figures=seen.figures)
    if seen.unaccounted:
        reasons = [*seen.unaccounted, *_overload(seen, seen.seconds)]
        return Fidelity(verdict="invalid", reasons=reasons, figures=seen.figures)
    reasons = list(_overload(seen, seen.seconds))
    return Fidelity(
        verdict="overloaded" if reasons else "valid", reasons=[*reasons, *_remarks(seen)], figures=seen.figures
    )


def assess_probe(carried_bps: Mapping[str, int], rate_bps: int) -> Fidelity:
    """The verdict on the links, by what those that were tried carried alone; the one that is farthest off is named."""
    ratios = {link: carried / rate_bps for link, carried in carried_bps.items()}
    figures = {"probe_ratio": round(_farthest_off(ratios)[1], 4)} if ratios else {}
    fast = {link: ratio for link, ratio in ratios.items() if ratio > PROBE_HIGH}
    slow = {link: ratio for link, ratio in ratios.items() if ratio < PROBE_LOW}
    verdict: Verdict
    for verdict, wrong, cure in (
        ("invalid", fast, "links are not shaped as asked"),
        ("overloaded", slow, "use a lower --bw, or stop what else runs on this machine"),
    ):
        if wrong:
            worst, ratio = _farthest_off(wrong)
            carried = f"alone, link {worst} carried {ratio:.0%} of its {format_rate(rate_bps)}"
            others = f" and {len(wrong) - 1} more of {len(ratios)} were as wrong" if len(wrong) > 1 else ""
            return Fidelity(verdict=verdict, reasons=[f"{carried}{others}: {cure}"], figures=figures)
    return Fidelity(verdict="valid", reasons=[], figures=figures)


def _farthest_off(ratios: Mapping[str, float]) -> tuple[str, float]:
    return max(ratios.items(), key=lambda entry: abs(entry[1] - 1))


def combine(parts: Iterable[Fidelity]) -> Fidelity:
    """The worst verdict of several, and the reasons for it, each once and with the number of its occurrences."""
    all_parts = list(parts)
    if not all_parts:
        return Fidelity()
    worst = max((part.verdict for part in all_parts), key=SEVERITY.index)
    counted: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for part in all_parts:
        for reason in part.reasons:
            kind = reason.partition(",")[0].partition(":")[0]
            counted[kind] += 1
            shown.setdefault(kind, reason)
    reasons = [
        f"{text} (so in {counted[kind]} of {len(all_parts)})" if counted[kind] > 1 else text
        for kind, text in shown.items()
    ]
    figures: dict[str, float] = {}
    for part in all_parts:
        for name, value in part.figures.items():
            figures[name] = max(value, figures.get(name, value))
    return Fidelity(verdict=worst, reasons=reasons, figures=figures)


def _overload(seen: Observed, seconds: float) -> Iterator[str]:
    lag, port = seen.lag
    if lag > max(LAG_SHARE * seconds, LAG_BATCHES * seen.burst_s):
        yield f"switches fell behind, frames lay unread for {lag * 1e3:.0f} ms at {port}{_busy(seen)}: {_slower(seen)}"
    if seen.socket_drops:
        yield f"switches had no time to read, {_sum(seen.socket_drops)} lost{_busy(seen)}: {_slower(seen)}"
    full = {host: count for host, count in seen.ring_drops.items() if host not in seen.disturbed}
    if full:
        yield f"receive queues were full, {_sum(full)} lost: raise rq_depth, or {_slower(seen)}"
    if seen.kernel_drops:
        yield f"the kernel dropped frames between interfaces, {_sum(seen.kernel_drops)}: {_slower(seen)}"
    if seen.send_buffer_fill > FULL:
        yield (
            f"frames in links' queues filled the switches' send buffer to {seen.send_buffer_fill:.0%}, beyond which "
            f"they are lost uncounted: use a smaller --queue, or {_slower(seen)}"
        )
    late, host = seen.latest
    if late > seen.oversleep_s:
        yield (
            f"hosts were late, {host} by {late * 1e3:.0f} ms where the protocol allows for {seen.oversleep_s * 1e3:.0f}"
            f": {_slower(seen)}, fewer hosts, or an idle machine"
        )


def _remarks(seen: Observed) -> Iterator[str]:
    """What is true of the network and of declared faults, not of the emulation, and explains a result."""
    for host, fault in seen.disturbed.items():
        late, dropped = seen.late_s.get(host, 0.0), seen.ring_drops.get(host, 0)
        full = f", and {dropped} frames found its receive queue full" if dropped else ""
        yield f"{fault} accounts for {host}, late by {late * 1e3:.0f} ms{full}"
    fill, port = seen.fullest
    if fill > FULL:
        effect = "is dropped, if not by a host, which sends it again"
        yield f"the queue at {port} was {fill:.0%} full, and what finds it full {effect}: raise --queue to avoid that"
    if seen.replaced:
        yield "ovs-vswitchd ended and another took over: what endpoints missed may have been what the first one held"
    if seen.down_drops:
        yield f"links were down, with {_sum(seen.down_drops)} dropped: what endpoints missed may have been there"


def _busy(seen: Observed) -> str:
    return f" (ovs-vswitchd {min(1.0, seen.switch_busy):.0%} busy)" if seen.switch_busy is not None else ""


def _slower(seen: Observed) -> str:
    """What to do about a rate that is too high: what was carried, with some reserve, to two digits."""
    mbps = seen.rate_bps / 1e6 * min(1.0, seen.limit_ratio or 1.0) * RESERVE
    cure = f"use --bw {float(f'{mbps:.2g}'):g} or less (see treecast calibrate)"
    return f"{cure} or the kernel datapath" if seen.datapath == "user" else cure


def _sum(drops: Mapping[str, int]) -> str:
    worst = max(drops, key=lambda name: drops[name])
    where = f"at {worst}" if len(drops) == 1 else f"at {len(drops)} places, most at {worst}"
    return f"{sum(drops.values())} frames {where}"
