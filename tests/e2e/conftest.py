"""What all tests of real runs have in common."""

from __future__ import annotations

import signal

# Whoever starts the tests in the background of a script has SIGINT ignored, and what they start would inherit that and
# rightly not be stopped by it. These tests stop runs as somebody at a terminal does.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    signal.signal(number, handler)
