"""Serial numbers that wrap: 24-bit PSNs (IBTA vol. 1, 9.7.1), operation ids (RFC 1982 arithmetic).

Inside the protocol numbers count up for ever; only on the wire are they cut to their field.
"""

from __future__ import annotations

PSN_BITS = 24
PSN_MASK = (1 << PSN_BITS) - 1


def unwrap(value: int, near: int, bits: int) -> int:
    """The number closest to ``near`` whose low ``bits`` bits are ``value`` (ties go up)."""
    span = 1 << bits
    candidate = near - (near % span) + value
    if candidate - near > span // 2:
        return candidate - span
    if near - candidate >= span // 2:
        return candidate + span
    return candidate
