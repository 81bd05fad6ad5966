"""What impairments take: values, their bounds, and how people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from topo.impairments.model import ImpairmentError, Range, Value

LAST_PSN = (1 << 24) - 1
MAX_TIME_US = 10_000_000
MOST_RANGES = 1000
"""What fits into a BPF program."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``read`` makes a value of text or raises ValueError, ``write`` the reverse, ``good`` tests it."""

    name: str
    help: str
    read: Callable[[str], Value]
    write: Callable[[Value], str]
    good: Callable[[Value], bool]
    default: Value | None = None
    required: bool = False

    def parsed(self, kind: str, text: str) -> Value:
        """The value that ``text`` says."""
        try:
            value = self.read(text)
        except (ValueError, ZeroDivisionError):
            raise ImpairmentError(f"{kind}: {self.name} {text!r}: {self.help}") from None
        return self.checked(kind, value)

    def checked(self, kind: str, value: Value) -> Value:
        """The value, if it is within its bounds."""
        if not self.good(value):
            raise ImpairmentError(f"{kind}: {self.name} {self.written(value)}: {self.help}")
        return value

    def written(self, value: Value) -> str:
        """As a person writes it."""
        return self.write(value)


def share(name: str = "share", *, required: bool = True, default: float | None = None, zero: bool = False) -> Parameter:
    """A part of the frames: ``2%``, ``0.02`` or ``1/50``."""

    def good(value: Value) -> bool:
        return isinstance(value, int | float) and math.isfinite(value) and (0 < value <= 1 or (zero and value == 0))

    help_text = f"a part of the frames, from {'0' if zero else 'more than 0'} to 1, like 2%, 0.02 or 1/50"
    return Parameter(name, help_text, _read_share, lambda v: f"{float(str(v)) * 100:.6g}%", good, default, required)


def time(name: str, *, required: bool = False, default: int | None = None) -> Parameter:
    """A time in whole microseconds: ``5ms``, ``200us``, ``1.5s``."""

    def good(value: Value) -> bool:
        return isinstance(value, int) and 1 <= value <= MAX_TIME_US

    return Parameter(name, "a time up to 10s, like 5ms or 200us", _read_time, _write_time, good, default, required)


def rate(name: str, low: int, high: int) -> Parameter:
    """A rate in bit/s; a bare number is Mbit/s."""

    def good(value: Value) -> bool:
        return isinstance(value, int) and low <= value <= high

    help_text = f"a rate from {low} bit/s to {high // 10**9} Gbit/s: Mbit/s, or with a unit like 500kbit"
    return Parameter(name, help_text, _read_rate, lambda v: f"{v}bit", good, None, required=True)


def count(name: str, what: str, low: int, high: int, *, required: bool = False) -> Parameter:
    """A whole number."""

    def good(value: Value) -> bool:
        return isinstance(value, int) and low <= value <= high

    return Parameter(name, f"{what}, from {low} to {high}", int, str, good, None, required)


def ranges(name: str, what: str, last: int) -> Parameter:
    """Numbers and ranges of them: ``17,40-60``; decimal, or hexadecimal with 0x."""

    def good(value: Value) -> bool:
        return isinstance(value, tuple) and 0 < len(value) <= MOST_RANGES and all(0 <= a <= b <= last for a, b in value)

    return Parameter(name, f"{what} from 0 to {last}, like 17,40-60", _read_ranges, _write_ranges, good)


def _read_share(text: str) -> float:
    if text.endswith("%"):
        return float(text[:-1]) / 100
    above, slash, below = text.partition("/")
    return float(above) / float(below) if slash else float(text)


_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}


def _read_time(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text)
    if match is None:
        raise ValueError(text)
    return round(float(match[1]) * _UNITS_US[match[2]])


def _write_time(value: Value) -> str:
    us = int(str(value))
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


_UNITS_BPS = {"": 10**6, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def _read_rate(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?bit)?(?:/s)?", text.lower())
    if match is None:
        raise ValueError(text)
    return round(float(match[1]) * _UNITS_BPS[match[2] or ""])


def _read_ranges(text: str) -> tuple[Range, ...]:
    found: list[Range] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found.append((int(first, 0), int(last if dash else first, 0)))
    return tuple(found)


def _write_ranges(value: Value) -> str:
    assert isinstance(value, tuple)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in value)
