"""The controller as seen by a run: a process of its own that reports in JSON lines what the switches have confirmed.

Once it is supervised, one that ends unasked is followed by another on the same port. Switches go on meanwhile by what
they hold, find the new one within a second, and tell it all that it has to know.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from experiments.errors import ExperimentFailed
from topo.counters import Counters
from topo.fabric import Fabric

PORT_TAKEN = 4
"""Exit code of the launcher when its port is in use."""
ATTEMPTS = 5
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0
COUNTERS_TIMEOUT_S = 20.0
RESTARTS = 8
"""How often one run starts another controller; more is no failure that somebody causes, but one that it has."""

Event = dict[str, Any]


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ControllerProcess:
    """Starts ``controller.launcher`` for a fabric; a context manager. ``log`` takes its standard error.

    ``drain_ms``: milliseconds in which a link's full queue runs dry.
    """

    def __init__(self, fabric: Fabric, rundir: Path, log: Path, drain_ms: int = 0) -> None:
        self._fabric = fabric
        self._file = rundir / "fabric.json"
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._status = -1
        self._text = b""
        self._asked = 0
        self._drain_ms = drain_ms
        self._supervised = False
        self._settled = True
        self.restarts = 0
        """How often another has been started."""
        self.port = 0
        self.programmed: Event = {}
        """The last report that was read of a plan in force at the switches; empty before the first."""
        self.openflow_errors: list[Event] = []

    def __enter__(self) -> Self:
        self._file.write_text(self._fabric.to_json())
        for _ in range(ATTEMPTS):
            self.port = free_port()
            self._spawn()
            with contextlib.suppress(_PortTaken):
                self.wait_for(lambda event: event["event"] == "listening", START_TIMEOUT_S, "to listen")
                return self
        raise ExperimentFailed(f"the controller found no free port on 127.0.0.1 in {ATTEMPTS} attempts")

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()  # its end of input is its sign to end
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._close_status()
        self._process = None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process is not None else None

    def supervise(self) -> None:
        """From now on start another when it ends unasked."""
        self._supervised = True

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "controller.launcher", "--fabric", str(self._file)),
                    *("--listen", f"127.0.0.1:{self.port}", "--status-fd", str(theirs.fileno())),
                    *("--drain-ms", str(self._drain_ms)),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
            )
        theirs.close()
        ours.setblocking(False)
        self._status, self._text = ours.detach(), b""

    def wait_for(self, wanted: Callable[[Event], bool], timeout_s: float, what: str) -> Event:
        """Read events until one is wanted; :class:`ExperimentFailed` when time is up or the controller ends."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self._next_event(deadline)
            if event is None:
                raise ExperimentFailed(f"the controller took more than {timeout_s:g} s {what}; see {self._log.name}")
            if event["event"] == "openflow_error":
                self.openflow_errors.append(event)
                raise ExperimentFailed(f"a switch refused a rule: {json.dumps(event)}")
            if wanted(event):
                return event

    def port_counters(self) -> dict[tuple[str, int], Counters]:
        """Counters of the ports of all connected switches at this moment, as OpenFlow has them, by (switch, port)."""
        while True:
            with contextlib.suppress(_Restarted):
                if not self._settled:
                    self.wait_for(
                        lambda event: event["event"] == "programmed", COUNTERS_TIMEOUT_S, "to program what has changed"
                    )
                return self._port_counters()

    def _port_counters(self) -> dict[tuple[str, int], Counters]:
        self._asked += 1
        number = self._asked
        self._ask({"request": "port_stats", "number": number})

        def answer(kind: str) -> Event:
            return self.wait_for(
                lambda event: event["event"] == kind and event["number"] == number,
                COUNTERS_TIMEOUT_S,
                "to report the counters of every switch",
            )

        waiting = set(answer("port_stats_asked")["switches"])
        table: dict[tuple[str, int], Counters] = {}
        while waiting:
            event = answer("port_stats")
            table |= {(event["switch"], int(port)): Counters(**values) for port, values in event["ports"].items()}
            if not event["more"]:
                waiting.remove(event["switch"])
        return table

    def _ask(self, request: Event) -> None:
        try:
            os.write(self._status, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            self._ended()

    def check(self) -> None:
        """Fail if it has ended, or reported an error of a switch, since the last look; if supervised, start another."""
        with contextlib.suppress(_Restarted):
            while self._line() is not None or select.select([self._status], [], [], 0)[0]:
                event = self._next_event(time.monotonic())
                if event is None:
                    return
                if event["event"] == "openflow_error":
                    raise ExperimentFailed(f"a switch refused a rule: {json.dumps(event)}")

    def next_programmed(self, patience_s: float = 0.1) -> Event | None:
        """The next report that a plan is in force at the switches; None if there is none for a while."""
        with contextlib.suppress(_Restarted):
            deadline = time.monotonic() + patience_s
            while (event := self._next_event(deadline)) is not None:
                if event["event"] == "programmed":
                    return event
        return None

    def _line(self) -> bytes | None:
        line, newline, _ = self._text.partition(b"\n")
        return line if newline else None

    def _next_event(self, deadline: float) -> Event | None:
        while (line := self._line()) is None:
            if not select.select([self._status], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            try:
                data = os.read(self._status, 1 << 16)
            except ConnectionResetError:  # it ended with a request unread
                data = b""
            if not data:
                self._ended()
            self._text += data
        self._text = self._text[len(line) + 1 :]
        event: Event = json.loads(line)
        if event["event"] in {"programmed", "switch_gone"}:
            self._settled = event["event"] == "programmed"
        if event["event"] == "programmed":
            self.programmed = event
        return event

    def _ended(self) -> None:
        assert self._process is not None
        code = self._process.wait(STOP_TIMEOUT_S)
        self._close_status()
        if self._supervised and self.restarts < RESTARTS:
            self.restarts += 1
            self._settled = False
            self._spawn()
            raise _Restarted
        if code == PORT_TAKEN:
            raise _PortTaken
        last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
        raise ExperimentFailed(f"the controller ended unasked with status {code}: {' '.join(last) or 'no word'}")

    def _close_status(self) -> None:
        """Once: by now the number could be another file's."""
        if self._status >= 0:
            os.close(self._status)
            self._status = -1


class _PortTaken(Exception):
    pass


class _Restarted(Exception):
    """What was waited for will not come: there is another controller now."""
