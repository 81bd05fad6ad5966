"""The socket by which a second terminal drives a running experiment; nobody but its owner can open it.

It lies in the run's folder below ``/run/treecast``, mode 0600, made before the run disappears into its sandbox. Whoever
connects must have the owner's user id (SO_PEERCRED, unix(7)). Requests and replies are lines (``faults.service``).
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from experiments.errors import UserError
from experiments.faults.service import LONGEST_LINE, Reply, Request
from experiments.ledger import ROOT, Ledger

NAME = "control"
CLIENT_S = 60.0
"""Patience of a client: a run answers once its fabric is up."""
SERVER_S = 2.0
"""Patience with a client that says nothing."""


def listen(rundir: Path) -> socket.socket:
    """The socket, listening; connections wait until somebody serves it."""
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(rundir / NAME))
    finally:
        os.umask(before)
    listener.listen(8)
    return listener


class Server:
    """Answers in a thread of its own; a context manager. ``answer`` gets a line and returns the reply."""

    def __init__(self, listener: socket.socket, answer: Callable[[bytes], Reply]) -> None:
        self._listener = listener
        self._answer = answer
        self._over, self._end = os.pipe()
        self._thread = threading.Thread(target=self._work, name="control", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        self._thread.join()
        os.close(self._over)

    def _work(self) -> None:
        listening = self._listener.fileno()
        while self._over not in select.select([listening, self._over], [], [])[0]:
            connection, _ = self._listener.accept()
            with connection, suppress(OSError):  # a client that goes away is its own affair
                connection.settimeout(SERVER_S)
                reply = self._serve(connection)
                connection.sendall(reply.model_dump_json().encode() + b"\n")

    def _serve(self, connection: socket.socket) -> Reply:
        line = _line(connection)
        user = _peer(connection)
        if user != os.geteuid():
            return Reply(error=f"this run belongs to user {os.geteuid()}, not to {user}")
        return self._answer(line)


def _peer(connection: socket.socket) -> int:
    """The user id of the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _line(connection: socket.socket) -> bytes:
    """What comes up to the end of the line, or of the stream; more than a line may have is cut off."""
    text = b""
    while b"\n" not in text and len(text) < LONGEST_LINE and (more := connection.recv(1 << 12)):
        text += more
    return text.partition(b"\n")[0]


def ask(request: Request, run: str | None = None, root: Path = ROOT) -> Reply:
    """Ask the run of that name, or the only one; :class:`UserError` where there is none, or none that answers."""
    place = _place(run, root)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(CLIENT_S)
        try:
            connection.connect(str(place))
            connection.sendall(request.model_dump_json().encode() + b"\n")
            text = b""
            while more := connection.recv(1 << 16):
                text += more
        except PermissionError:
            raise UserError("fault: the run belongs to another user; use sudo") from None
        except OSError as problem:
            raise UserError(f"fault: run {place.parent.name} does not answer ({problem})") from None
    if not text:
        raise UserError(f"fault: run {place.parent.name} has just ended")
    return Reply.model_validate_json(text)


def _place(run: str | None, root: Path) -> Path:
    """The socket of a run that is live; ``run`` names one where there are several."""
    places = {path.parent.name: path for path in sorted(root.glob(f"*/{NAME}"))}
    live = [name for name in Ledger(root).live() if name in places] if root.exists() else []
    if run is not None and run not in live:
        raise UserError(f"fault: no run {run} is on; there are {', '.join(live) or 'none'}")
    if not live:
        raise UserError("fault: no run is on; start one with treecast run or treecast cli")
    if run is None and len(live) > 1:
        raise UserError(f"fault: {len(live)} runs are on; choose with --run: {', '.join(live)}")
    return places[run or live[0]]
