"""How a link is shaped: from a :class:`LinkSpec` to lines for ``tc -batch``, and from the kernel's report back.

Both ends of every link carry the same tree: an HTB root with one class at the link's rate, and below it the link's
queue, a pfifo, or netem where the link has a delay. The leaf's handle and the class id are fixed, so that a fault
can hang its own classes beside them::

    1:  htb, default class 1
    `- 1:1  rate = ceil = the link's rate
       `- 10:  pfifo limit Q   or   netem delay D limit Q

Rates are counted as HTB counts them: whole Ethernet frames without preamble, checksum and gap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ETHERNET_HEADER = 14

MIN_RATE_BPS = 1_000
MAX_RATE_BPS = 10_000_000_000
MAX_DELAY_US = 10_000_000

BURST_FRAMES = 4
"""Full frames that may pass at once after a pause. Frames that arrive together cost the userspace datapath far less
than evenly spaced ones; four of 4 KiB are 1.3 ms of a 100 Mbit/s link."""

BURST_US = 100
"""What a link must be able to catch up, since the kernel's timers are late by tens of microseconds: with four frames
of burst a 10 Gbit/s link reached 96 % of its rate, with 100 us 99 %."""

MAX_BURST_S = 60
"""HTB keeps a burst as a time in 32 bits of 64 ns, that is 274 s; it never lends more than 60 s."""


class ShapingError(ValueError):
    """A link that cannot be shaped as asked."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """One link, the same in both directions.

    ``rate_bps`` bit/s; ``delay_us`` microseconds each way; ``queue_packets`` packets that wait at each sending end
    before the next is dropped; ``mtu`` bytes of IP packet that the interfaces take.
    """

    rate_bps: int
    delay_us: int = 0
    queue_packets: int = 1000
    mtu: int = 1500

    def __post_init__(self) -> None:
        for name, value, low, high, unit in (
            ("rate", self.rate_bps, MIN_RATE_BPS, MAX_RATE_BPS, "bit/s"),
            ("delay", self.delay_us, 0, MAX_DELAY_US, "us"),
            ("queue", self.queue_packets, 1, 1_000_000, "packets"),
            ("MTU", self.mtu, 576, 65_535, "bytes"),
        ):
            if not low <= value <= high:
                raise ShapingError(f"link {name} of {value} {unit}: must be from {low} to {high} {unit}")

    @property
    def frame_bytes(self) -> int:
        """A full frame as HTB counts it."""
        return self.mtu + ETHERNET_HEADER

    @property
    def burst_bytes(self) -> int:
        """What may pass at once after a pause: four full frames, or 100 us at the link's rate if that is more."""
        wanted = max(BURST_FRAMES * self.frame_bytes, self.rate_bps * BURST_US // 8_000_000)
        return min(wanted, self.rate_bps * MAX_BURST_S // 8)

    @property
    def drain_ms(self) -> int:
        """Milliseconds in which a full queue of full frames runs dry."""
        return math.ceil(self.queue_packets * self.frame_bytes * 8000 / self.rate_bps)

    @property
    def limit_packets(self) -> int:
        """Limit of the leaf: the queue, and with a delay also the full frames that are on their way."""
        return self.queue_packets + math.ceil(self.rate_bps * self.delay_us / (8_000_000 * self.frame_bytes))


def tc_lines(interface: str, spec: LinkSpec) -> list[str]:
    """Lines for ``tc -batch`` that shape what a fresh ``interface`` sends."""
    rate, burst = f"{spec.rate_bps}bit", f"{spec.burst_bytes}b"
    leaf = f"netem delay {spec.delay_us}us limit" if spec.delay_us else "pfifo limit"
    return [
        f"qdisc add dev {interface} root handle 1: htb default 1",
        (
            f"class add dev {interface} parent 1: classid 1:1 htb rate {rate} ceil {rate}"
            f" burst {burst} cburst {burst} quantum {spec.frame_bytes}"
        ),
        f"qdisc add dev {interface} parent 1:1 handle 10: {leaf} {spec.limit_packets}",
    ]


def differences(interface: str, spec: LinkSpec, qdiscs: Sequence[Mapping[str, object]], classes: str) -> list[str]:
    """What the kernel reports for ``interface`` and ``spec`` did not ask for, one line each; empty if all is right.

    ``qdiscs`` are the interface's entries of ``tc -j qdisc show``, ``classes`` is the text of ``tc -d class show dev
    <interface>`` (older releases of tc print classes as text only).
    """
    return [f"{interface}: {problem}" for problem in (*_qdisc_problems(spec, qdiscs), *_class_problems(spec, classes))]


def _qdisc_problems(spec: LinkSpec, qdiscs: Sequence[Mapping[str, object]]) -> Iterator[str]:
    leaf = "netem" if spec.delay_us else "pfifo"
    wanted = {"1:": "htb", "10:": leaf}
    found = {str(q.get("handle")): str(q.get("kind")) for q in qdiscs}
    if found != wanted:
        yield f"qdiscs are {_named(found)}, asked for {_named(wanted)}"
        return
    options = {str(q["handle"]): q.get("options") for q in qdiscs}
    root, leaf_options = (options[h] if isinstance(options[h], Mapping) else {} for h in ("1:", "10:"))
    assert isinstance(root, Mapping)
    assert isinstance(leaf_options, Mapping)
    if root.get("default") not in ("0x1", 1, "1"):
        yield f"htb sends unclassified packets to {root.get('default')}, asked for class 1"
    if leaf_options.get("limit") != spec.limit_packets:
        yield f"queue limit is {leaf_options.get('limit')}, asked for {spec.limit_packets} packets"
    if spec.delay_us and not math.isclose(_delay_us(leaf_options), spec.delay_us, rel_tol=0.001, abs_tol=1):
        yield f"delay is {_delay_us(leaf_options):g} us, asked for {spec.delay_us}"


def _named(qdiscs: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} {handle}" for handle, kind in sorted(qdiscs.items(), key=_number)) or "none"


def _number(qdisc: tuple[str, str]) -> int:
    return int(qdisc[0].rstrip(":"), 16)


def _delay_us(options: Mapping[str, object]) -> float:
    """Delay of a netem report; tc gives seconds, nested since release 5.0."""
    delay = options.get("delay", 0.0)
    seconds = delay.get("delay", 0.0) if isinstance(delay, Mapping) else delay
    return float(str(seconds)) * 1e6


_CLASS = re.compile(
    r"^class htb 1:1 root .*?quantum (?P<quantum>\S+) rate (?P<rate>\S+) ceil (?P<ceil>\S+) .*?"
    r"burst (?P<burst>\S+?)(/\d+)? mpu \S+ (overhead \S+ )?cburst (?P<cburst>\S+?)(/\d+)? ",
    re.MULTILINE,
)


def _class_problems(spec: LinkSpec, classes: str) -> Iterator[str]:
    found = _CLASS.search(classes)
    extra = [line for line in classes.splitlines() if line.startswith("class ") and " 1:1 " not in line]
    if extra:
        yield f"has further classes: {'; '.join(extra)}"
    if found is None:
        yield f"has no class htb 1:1 with a quantum, tc says {classes.strip()!r}"
        return
    # The kernel keeps a rate in whole bytes per second and tc prints at least three digits of it; a burst is turned
    # into whole microseconds at the rate and back.
    slack = 2 * spec.rate_bps / 8_000_000 + 2
    for name, wanted, tolerance in (
        ("rate", spec.rate_bps, spec.rate_bps * 0.001 + 8),
        ("ceil", spec.rate_bps, spec.rate_bps * 0.001 + 8),
        ("burst", spec.burst_bytes, slack + spec.burst_bytes * 0.01),
        ("cburst", spec.burst_bytes, slack + spec.burst_bytes * 0.01),
        ("quantum", spec.frame_bytes, 0),
    ):
        value = quantity(found[name])
        if abs(value - wanted) > tolerance:
            yield f"{name} is {value}, asked for {wanted}"


_UNITS = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "b": 1, "kb": 1 << 10, "mb": 1 << 20}


def quantity(text: str) -> int:
    """A rate (bit/s) or a size (bytes) as tc prints it: ``56234Kbit``, ``16837b``, ``15Kb``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", text)
    if match is None or match[2].lower() not in _UNITS:
        raise ShapingError(f"tc printed {text!r}, which is neither a rate nor a size")
    return round(float(match[1]) * _UNITS[match[2].lower()])
