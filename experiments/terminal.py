"""The user's terminal, left as it was found even when what drew on it was killed."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SHOW_CURSOR = "\x1b[?25h"
RESET_STYLE = "\x1b[0m"


@dataclass(slots=True)
class Terminal:
    """Set ``broken`` when the program that drew on it could not tidy up."""

    broken: bool = False


@contextmanager
def kept() -> Iterator[Terminal]:
    """Put the terminal's modes back at the end; if it is ``broken`` also show the cursor again."""
    terminal = Terminal()
    modes = _modes()
    try:
        yield terminal
    finally:
        if modes is not None and _in_foreground():
            termios.tcsetattr(0, termios.TCSADRAIN, modes)
        if terminal.broken and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            sys.stderr.write(RESET_STYLE + SHOW_CURSOR + "\n")
            sys.stderr.flush()


def _modes() -> list[int | list[bytes | int]] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _in_foreground() -> bool:
    """Whether we may change the modes; a background process that tries is stopped by the kernel."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
