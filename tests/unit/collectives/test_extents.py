"""Ranges of bytes against a plain array of flags."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from endpoints.core.extents import Extents

ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


@given(ranges, ranges)
def test_what_was_added_is_covered_and_nothing_else(added, asked) -> None:
    extents, flags = Extents(), np.zeros(40, bool)
    for start, stop in added:
        extents.add(start, stop)
        flags[start:stop] = True
    assert extents.total == flags.sum()
    for start, stop in asked:
        assert extents.covers(start, stop) == bool(flags[start:stop].all())
