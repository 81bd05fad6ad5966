"""Quantities as people write them, to and from exact integers.

Everything is computed with fractions, never with floats: ``2.5Gbit`` is 2 500 000 000 bit/s and ``0.1us`` is 100 ns.

===========  =====================================================  ==========================================
quantity     written                                                means
===========  =====================================================  ==========================================
rate         ``50`` ``50M`` ``56G`` ``2.5Gbit`` ``100mbit/s``       bit/s; a bare number is Mbit/s
size         ``4096`` ``64KiB`` ``64K`` ``1MiB`` ``1MB``            bytes; ``K`` = ``KiB`` = 1024, ``KB`` = 1000
probability  ``1%`` ``0.5%`` ``0``                                  0 to 1; a bare number other than 0 is refused
time         ``250ns`` ``10us`` ``5ms`` ``3s`` ``0``                ns; a bare number other than 0 is refused
===========  =====================================================  ==========================================

Sizes follow GNU coreutils. Bits and bytes are never guessed: ``MB/s`` is no rate and ``Mbit`` is no size.
"""

from __future__ import annotations

import re
from fractions import Fraction

from experiments.errors import UserError

DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)\s*"
_RATE = re.compile(_NUMBER + r"(?:([kKmMgGtT]?)((?:[bB][iI][tT]|b)(?:/s|ps)?)?)", re.ASCII)
_SIZE = re.compile(_NUMBER + r"([kKmMgGtT]?)(i[bB]|B)?", re.ASCII)
_PERCENT = re.compile(_NUMBER + r"%", re.ASCII)
_TIME = re.compile(_NUMBER + r"(ns|us|µs|ms|s|min)")


def _whole(value: Fraction, what: str, text: str, unit: str) -> int:
    if value.denominator != 1:
        raise UserError(f"{what} {text!r}: not a whole number of {unit}")
    return value.numerator


def parse_rate(text: str, what: str = "rate") -> int:
    """Bits per second; a number without a unit is Mbit/s. ``what`` names the quantity in errors."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        hint = " (bytes per second are not meant: 8 bits are a byte)" if "B" in text else ""
        raise UserError(f"{what} {text!r}: write bits per second like 50M, 56G or 2.5Gbit{hint}")
    number, prefix, unit = match.groups()
    factor = DECIMAL[prefix.lower()] if prefix or unit else DECIMAL["m"]
    rate = _whole(Fraction(number) * factor, what, text, "bit/s")
    if rate == 0:
        raise UserError(f"{what} {text!r}: must be above 0, for example 50M")
    return rate


def parse_size(text: str, what: str = "size") -> int:
    """Bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] == "iB" and not match[2]):
        raise UserError(f"{what} {text!r}: write bytes like 4096, 64KiB, 1MiB (1024 each) or 1MB (1000 each)")
    number, prefix, suffix = match.groups()
    factors = DECIMAL if prefix and suffix == "B" else BINARY
    return _whole(Fraction(number) * factors[prefix.lower()], what, text, "bytes")


def parse_probability(text: str, what: str = "probability") -> float:
    """A probability from 0 to 1, written as a percentage."""
    text = text.strip()
    if re.fullmatch(r"0+(\.0+)?", text):
        return 0.0
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise UserError(f"{what} {text!r}: write a percentage like 1% or 0.5%")
    share = Fraction(match[1]) / 100
    if share > 1:
        raise UserError(f"{what} {text!r}: must be at most 100%")
    return float(share)


def parse_time(text: str, what: str = "time") -> int:
    """Nanoseconds."""
    text = text.strip()
    if re.fullmatch(r"0+(\.0+)?", text):
        return 0
    match = _TIME.fullmatch(text)
    if match is None:
        raise UserError(f"{what} {text!r}: write a time with its unit, like 250us, 5ms or 3s")
    return _whole(Fraction(match[1]) * NANOSECONDS[match[2]], what, text, "nanoseconds")


def _decimal(value: Fraction) -> str | None:
    """``value`` in decimal digits where at most four after the point say it exactly, else None."""
    scaled = value * 10**4
    if scaled.denominator != 1:
        return None
    whole, rest = divmod(scaled.numerator, 10**4)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".")


def _largest(value: int, units: list[tuple[str, int]]) -> str:
    """``value`` in the largest unit in which it is at least 1 and exact; the last unit must have factor 1."""
    for unit, factor in units:
        if value >= factor and (digits := _decimal(Fraction(value, factor))) is not None:
            return f"{digits} {unit}"
    return f"{value} {units[-1][0]}"


def format_rate(bps: int) -> str:
    """Exact, and read back by :func:`parse_rate`: ``50 Mbit/s``."""
    return _largest(bps, [("Tbit/s", 10**12), ("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3), ("bit/s", 1)])


def format_size(size: int) -> str:
    """Exact, and read back by :func:`parse_size`: ``1 MiB``, ``4 KiB``, ``1000 B``."""
    return _largest(size, [("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)])


def format_time(ns: int) -> str:
    """Exact, and read back by :func:`parse_time`: ``5 ms``."""
    return _largest(ns, [("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)])


def format_probability(share: float) -> str:
    """The shortest percentage that :func:`parse_probability` reads back as the same number."""
    return f"{_exact_decimal(Fraction(repr(share)) * 100)}%"


def _exact_decimal(value: Fraction) -> str:
    """All digits of a fraction whose denominator has no prime factor but 2 and 5."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    whole, rest = divmod((value * 10**digits).numerator, 10**digits)
    return f"{whole}.{rest:0{digits}d}" if digits else str(whole)
