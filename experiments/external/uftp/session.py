"""UFTP's receivers, which stay for a whole run, and its sender, which is started for every file."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from experiments.external.site import Measured, ProgramFailed, Site
from experiments.external.uftp import commands
from topo.tc import inside

LOOK_S = 0.05
STOP_TIMEOUT_S = 5.0
COMMAND = "the whole command, registration and confirmation included"


@contextmanager
def session(site: Site) -> Iterator[Session]:
    """A receiver on every host but the first."""
    running: list[subprocess.Popen[bytes]] = []
    with site.log.open("wb") as log:
        try:
            for rank, place in enumerate(site.places[1:], start=1):
                folder = site.folder / place.name
                folder.mkdir()
                command = inside(place.pid, commands.receiver(place, rank, folder))
                running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            yield Session(site, running)
        finally:
            for process in running:
                process.terminate()
            for process in running:
                try:
                    process.wait(STOP_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


class Session:
    """The running receivers."""

    def __init__(self, site: Site, receivers: Sequence[subprocess.Popen[bytes]]) -> None:
        self._site = site
        self._receivers = receivers

    def run(self, data: Sequence[Path], received: Sequence[Path], timeout_s: float) -> Measured:
        """One Broadcast; see :class:`experiments.external.site.Program`.

        ``seconds`` is UFTP's data phase by its own word; the extra seconds have the whole command, with registration
        before it and confirmation behind it.
        """
        if not self._receivers:
            received[0].write_bytes(data[0].read_bytes())
            return Measured(0.0, 0.0)
        status = self._site.folder / "status"
        status.unlink(missing_ok=True)
        cpu, begun = self._cpu_seconds(), time.monotonic()
        self._send(data[0], status, timeout_s)
        ended = time.monotonic()
        seconds = commands.transfer_seconds(status.read_text(), len(self._receivers))
        if seconds is None:
            raise ProgramFailed(f"UFTP's status file does not have {len(self._receivers)} receivers' success")
        cpu = self._cpu_seconds() - cpu
        received[0].write_bytes(data[0].read_bytes())  # it has what it sent; nothing is received there
        for place, path in zip(self._site.places[1:], received[1:], strict=True):
            (self._site.folder / place.name / commands.NAME).replace(path)
        return Measured(seconds, cpu, {COMMAND: ended - begun})

    def _send(self, file: Path, status: Path, timeout_s: float) -> None:
        place, ranks = self._site.places[0], range(1, len(self._site.places))
        command = commands.sender(place, ranks, self._site.rate_bps, self._site.mtu, status, file)
        deadline = time.monotonic() + timeout_s
        with self._site.log.open("ab") as log:
            process = subprocess.Popen(inside(place.pid, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                while process.poll() is None:
                    self._site.look()
                    self._check()
                    if time.monotonic() > deadline:
                        raise ProgramFailed(f"UFTP took more than {timeout_s:.0f} s")
                    time.sleep(LOOK_S)
            finally:
                process.kill()
                process.wait()
        if process.returncode != 0:
            raise ProgramFailed(f"uftp ended with status {process.returncode}; see {self._site.log.name}")

    def _check(self) -> None:
        for place, process in zip(self._site.places[1:], self._receivers, strict=True):
            if process.poll() is not None:
                raise ProgramFailed(f"uftpd on {place.name} ended unasked with status {process.returncode}")

    def _cpu_seconds(self) -> float:
        """Of the receivers so far, and of all programs that have ended, the senders among them."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime + sum(_cpu_seconds(process.pid) for process in self._receivers)


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process that runs, to the nanosecond (the first field of schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
