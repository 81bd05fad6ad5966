"""The real command at a terminal of its own, as somebody who types has it: what is typed goes in, keys included."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.command import BOUND_S, TREECAST

CTRL_C, CTRL_D = "\x03", "\x04"


class Typed:
    """``treecast …`` started at a terminal; ``seen`` is all that was on it."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self.seen = ""
        self._from = 0
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm", COLUMNS="200", INPUTRC="/dev/null")
            os.execv(TREECAST, [str(TREECAST), *arguments])

    def type(self, keys: str) -> None:
        """Type keys."""
        self._from = len(self.seen)
        os.write(self._terminal, keys.encode())

    def sees(self, text: str) -> None:
        """Wait until ``text`` is there, behind what was last typed."""
        deadline = time.monotonic() + BOUND_S
        while text not in self.seen[self._from :]:
            assert self._read(deadline), f"{text!r} was not seen before the end: {self.seen}"

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        deadline = time.monotonic() + BOUND_S
        while self._read(deadline):
            continue
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self, deadline: float) -> bool:
        assert select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))[0], self.seen
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # Linux says so when nobody has the other end any more
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)
