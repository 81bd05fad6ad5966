"""A job's whole life with a stand-in for mpirun and MPI: start, operations, death and silence of a rank."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from endpoints.collectives.kinds import KINDS, KindName
from experiments.external.openmpi import job as module
from experiments.external.openmpi import launch
from experiments.external.openmpi.job import job
from experiments.external.site import Place, ProgramFailed, Site

MPI = """
class COMM_WORLD:
    Get_rank = staticmethod(lambda: 0)
    Barrier = staticmethod(lambda: None)

    @staticmethod
    def Allgather(sent, received):
        {gather}

    @staticmethod
    def Bcast(buffer, root):
        pass  # a rank alone has what it sends

    @staticmethod
    def Reduce_scatter_block(sent, received, op):
        received[0][:] = sent[0]  # and nobody adds to it


BYTE = UINT32_T = SUM = None
"""
GATHERS = "received[0][:] = sent[0]"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """One host, this one; ``mpirun`` is the program that it would start."""
    monkeypatch.setattr(launch, "command", lambda _folder, _places, _parameters, program: list(program))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    (tmp_path / "mpi4py").mkdir()
    mpi(tmp_path, GATHERS)
    folder = tmp_path / "own"
    folder.mkdir()
    place = Place(socket.gethostname(), "10.0.0.2", "h1-eth0", 1)
    return Site((place,), 50_000_000, 4160, folder, tmp_path / "log", lambda: None)


def mpi(folder: Path, gather: str) -> None:
    (folder / "mpi4py/__init__.py").write_text("")
    (folder / "mpi4py/MPI.py").write_text(MPI.format(gather=gather))


def files(folder: Path, size: int) -> tuple[list[Path], list[Path]]:
    sent, received = folder / "sent", folder / "received"
    sent.write_bytes(os.urandom(size))
    received.write_bytes(bytes(size))
    return [sent], [received]


@pytest.mark.parametrize("size", [0, 1, 100_000])
@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_one_after_the_other_in_the_same_job(
    site: Site, tmp_path: Path, kind: KindName, size: int
) -> None:
    with job(site, kind, {}) as started:
        for _ in range(2):
            sent, received = files(tmp_path, size)
            measured = started.run(sent, received, 60.0)
            assert received[0].read_bytes() == sent[0].read_bytes()
            assert measured.seconds >= 0
            assert measured.cpu_seconds >= 0


def test_a_job_that_does_not_start_says_why(site: Site, tmp_path: Path) -> None:
    (tmp_path / "mpi4py/MPI.py").write_text("raise SystemExit('there are no slots')")
    with (
        pytest.raises(ProgramFailed, match="mpirun ended unasked with status 1; there are no slots"),
        job(site, "allgather", {}),
    ):
        pass


def test_a_rank_on_another_host_is_not_taken_for_this_one(site: Site) -> None:
    elsewhere = Site((Place("h7", "10.0.0.9", "h7-eth0", 1),), 1, 1500, site.folder, site.log, site.look)
    with pytest.raises(ProgramFailed, match=r"runs rank 0 on .*, not on h7"), job(elsewhere, "allgather", {}):
        pass


def test_a_rank_that_dies_in_an_operation_is_told_with_its_last_words(site: Site, tmp_path: Path) -> None:
    mpi(tmp_path, "raise SystemExit('out of memory')")
    with (
        job(site, "allgather", {}) as started,
        pytest.raises(ProgramFailed, match=r"ended unasked.*(out of memory|said nothing)"),
    ):
        started.run(*files(tmp_path, 10), 60.0)


def test_an_operation_that_takes_too_long_is_given_up_and_the_job_ends(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT_S", 0.1)
    mpi(tmp_path, "import signal; signal.pause()")
    with (
        job(site, "allgather", {}) as started,
        pytest.raises(ProgramFailed, match="Open MPI took too long to finish an operation"),
    ):
        started.run(*files(tmp_path, 10), 0.0)
    assert started._process.returncode is not None


def test_a_fabric_that_fails_meanwhile_is_what_is_told(site: Site, tmp_path: Path) -> None:
    broken: list[str] = []

    def look() -> None:
        if broken:
            raise RuntimeError(broken[0])

    watched = Site(site.places, site.rate_bps, site.mtu, site.folder, site.log, look)
    with job(watched, "allgather", {}) as started:
        broken.append("a switch has ended")
        with pytest.raises(RuntimeError, match="a switch has ended"):
            started.run(*files(tmp_path, 10), 60.0)
