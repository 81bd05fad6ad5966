"""One ``mpirun`` over all hosts, which stays for a whole run: started once, given one operation after the other."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from endpoints.collectives.kinds import KindName
from experiments.external.openmpi import launch
from experiments.external.openmpi.orders import Answer, Order
from experiments.external.site import Measured, ProgramFailed, Site

START_TIMEOUT_S = 60.0
START_PER_RANK_S = 1.0
STOP_TIMEOUT_S = 10.0
LOOK_S = 0.2


@contextmanager
def job(site: Site, kind: KindName, parameters: Mapping[str, str]) -> Iterator[Job]:
    """Ranks that wait on every host for collectives of a kind, under the MCA ``parameters``."""
    folder = site.folder
    launch.hostfile_path(folder).write_text(launch.hostfile(site.places))
    launch.agent_path(folder).write_text(launch.agent(site.places))
    path = folder / "control"
    program = [sys.executable, "-m", f"{__package__}.worker", str(path)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with socket.socket(socket.AF_UNIX) as control, site.log.open("wb") as said:
        control.bind(str(path))
        control.listen(len(site.places))
        process = subprocess.Popen(
            launch.command(folder, site.places, parameters, program),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=environment,
        )
        started = Job(site, kind, process)
        try:
            started.accept(control)
            yield started
        finally:
            started.end()


class Job:
    """The running ranks, each at the other end of a socket."""

    def __init__(self, site: Site, kind: KindName, process: subprocess.Popen[bytes]) -> None:
        self._site = site
        self._kind = kind
        self._process = process
        self._links: dict[int, Connection] = {}

    def accept(self, control: socket.socket) -> None:
        """Wait for every rank to call."""
        count = len(self._site.places)
        deadline = time.monotonic() + START_TIMEOUT_S + START_PER_RANK_S * count
        while len(self._links) < count:
            self._check(deadline, "start")
            if select.select([control], [], [], LOOK_S)[0]:
                link = Connection(control.accept()[0].detach())
                rank, host = self._receive(link)
                if host != self._site.places[rank].name:
                    raise ProgramFailed(f"Open MPI runs rank {rank} on {host}, not on {self._site.places[rank].name}")
                self._links[rank] = link

    def run(self, data: Sequence[Path], received: Sequence[Path], timeout_s: float) -> Measured:
        """One collective; see :class:`experiments.external.site.Program`."""
        for rank, link in self._links.items():
            with contextlib.suppress(BrokenPipeError):  # that it has ended is told by mpirun
                link.send(Order(self._kind, data[rank], received[rank]))
        answers: list[Answer] = []
        waiting = list(self._links.values())
        deadline = time.monotonic() + timeout_s
        while waiting:
            self._check(deadline, "finish an operation")
            ready = wait(waiting, LOOK_S)
            answers += [self._receive(link) for link in waiting if link in ready]
            waiting = [link for link in waiting if link not in ready]
        return Measured(
            seconds=max(answer.seconds for answer in answers),
            cpu_seconds=sum(answer.cpu_seconds for answer in answers),
        )

    def end(self) -> None:
        """Hang up, which is the ranks' sign to end; whoever does not is ended."""
        for link in self._links.values():
            link.close()
        for stop in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(STOP_TIMEOUT_S if self._links else 0)
            except subprocess.TimeoutExpired:
                stop()
            else:
                return
        self._process.wait()

    def _receive(self, link: Connection) -> Any:
        try:
            return link.recv()
        except (EOFError, OSError):
            raise ProgramFailed(f"a rank of Open MPI ended unasked; {self._last_words()}") from None

    def _check(self, deadline: float, what: str) -> None:
        self._site.look()
        if self._process.poll() is not None:
            raise ProgramFailed(f"mpirun ended unasked with status {self._process.returncode}; {self._last_words()}")
        if time.monotonic() > deadline:
            raise ProgramFailed(f"Open MPI took too long to {what}; {self._last_words()}")

    def _last_words(self) -> str:
        lines = [line for line in self._site.log.read_text(errors="replace").splitlines() if line.strip(" -")]
        return lines[-1].strip() if lines else f"it said nothing in {self._site.log.name}"
