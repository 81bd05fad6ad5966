"""UFTP's life in a run, with stand-ins for its programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.external.site import Place, ProgramFailed, Site
from experiments.external.uftp import commands
from experiments.external.uftp import session as module
from experiments.external.uftp.session import COMMAND, session

HOSTS = 3
STATS = "STATS;0x0000000{};1;0;0;1MB;0.5;1KB/s"

Programs = Callable[[str, str], None]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Puts shell scripts in the place of uftpd and uftp, which run here instead of on a host."""
    monkeypatch.setattr(module, "inside", lambda _pid, command: command)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def put(uftpd: str, uftp: str) -> None:
        for name, script in (("uftpd", uftpd), ("uftp", uftp)):
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)

    return put


@pytest.fixture
def site(tmp_path: Path) -> Site:
    places = tuple(Place(f"h{i + 1}", f"10.0.0.{i + 2}", f"h{i + 1}-eth0", 1) for i in range(HOSTS))
    folder = tmp_path / "own"
    folder.mkdir()
    return Site(places, 50_000_000, 4160, folder, tmp_path / "log", lambda: None)


WAITS = "exec sleep 600"


def transfers(site: Site, stats: int = HOSTS - 1) -> str:
    """A uftp that hands its last argument, the file, to every receiver."""
    said = "\\n".join(STATS.format(rank + 1) for rank in range(1, 1 + stats))
    copies = [f'cp "$file" {site.folder}/{place.name}/{commands.NAME}' for place in site.places[1:]]
    return "\n".join(['for file in "$@"; do :; done', *copies, f'printf "{said}\\n" >{site.folder}/status'])


def files(folder: Path, size: int = 1000) -> tuple[list[Path], list[Path]]:
    sent = [folder / f"sent-{rank}" for rank in range(HOSTS)]
    sent[0].write_bytes(os.urandom(size))
    return sent, [folder / f"received-{rank}" for rank in range(HOSTS)]


def test_every_rank_has_the_file_and_the_data_phase_is_what_counts(
    programs: Programs, site: Site, tmp_path: Path
) -> None:
    programs(WAITS, transfers(site))
    with session(site) as started:
        for _ in range(2):
            sent, received = files(tmp_path)
            measured = started.run(sent, received, 60.0)
            assert [path.read_bytes() for path in received] == [sent[0].read_bytes()] * HOSTS
            assert measured.seconds == 0.5
            assert measured.cpu_seconds > 0
            assert set(measured.extra_seconds) == {COMMAND}


@pytest.mark.parametrize(
    ("uftpd", "uftp", "complaint"),
    [
        (WAITS, "exit 7", r"uftp ended with status 7; see log"),
        (f'case "$*" in */h2) exit 3 ;; esac; {WAITS}', WAITS, r"uftpd on h2 ended unasked with status 3"),
    ],
)
def test_a_program_that_ends_is_named(
    programs: Programs, site: Site, tmp_path: Path, uftpd: str, uftp: str, complaint: str
) -> None:
    programs(uftpd, uftp)
    with session(site) as started, pytest.raises(ProgramFailed, match=complaint):
        started.run(*files(tmp_path), 60.0)


def test_a_transfer_that_takes_too_long_is_given_up(programs: Programs, site: Site, tmp_path: Path) -> None:
    programs(WAITS, WAITS)
    with session(site) as started, pytest.raises(ProgramFailed, match="UFTP took more than 0 s"):
        started.run(*files(tmp_path), 0.0)


def test_a_receiver_without_success_is_a_failure(programs: Programs, site: Site, tmp_path: Path) -> None:
    programs(WAITS, transfers(site, stats=1))
    with session(site) as started, pytest.raises(ProgramFailed, match="does not have 2 receivers' success"):
        started.run(*files(tmp_path), 60.0)
