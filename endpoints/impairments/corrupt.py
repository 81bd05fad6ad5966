"""Corruption: one bit is inverted, so that the ICRC, and nothing else, tells."""

from __future__ import annotations

import numpy as np

from endpoints.core.layout import BTH, BTH_RESV8A
from endpoints.impairments.registry import Blow, Impairment


def _strike(blow: Blow) -> None:
    """Any bit from BTH to the ICRC but those that the ICRC leaves out, which any switch may change unnoticed."""
    candidates = (blow.fates.length[blow.hit] - BTH - 1) * 8
    bit = (blow.rolls[blow.hit] % candidates.astype(np.uint64)).astype(np.int64) + BTH * 8
    blow.fates.flip[blow.hit] = np.where(bit >= BTH_RESV8A * 8, bit + 8, bit)


IMPAIRMENT = Impairment("corrupt", "one bit of the packet is inverted", _strike)
