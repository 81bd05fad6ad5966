"""The one clock: monotonic nanoseconds, the same for every process of one machine, so that ranks can be compared."""

from __future__ import annotations

import time

now_ns = time.monotonic_ns
