"""External programs for real: Open MPI and UFTP over the fabric, beside ours, where they are installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from experiments.external.uftp.session import COMMAND
from experiments.results import Run, Summary
from tests.e2e.command import BOUND_S, NEEDS, Command, Traces, children, descendants, treecast, until, words
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, needs(*NEEDS)]

MPI = shutil.which("mpirun.openmpi") is not None and find_spec("mpi4py") is not None
UFTP = shutil.which("uftp") is not None and shutil.which("uftpd") is not None
SIZE = 100_000
HOSTS = 4
LEAFSPINE = ("--topo", "leafspine,leaves=2,spines=2,hosts=2", "--bw", "50", "--size", str(SIZE))
OF_MPI = ("openmpi_allgather", "openmpi_ring_allgather", "openmpi_broadcast", "openmpi_reduce_scatter")
EXTERNAL = (*OF_MPI, "uftp_broadcast")


def received(run: Run) -> dict[str, int]:
    """Bytes that each host's link has brought it."""
    return {link.partition("->")[2]: count for link, count in run.link_bytes.items() if "->h" in link}


def reason(results: Summary, algorithm: str) -> str:
    [why] = [entry.reason for entry in results.skipped if entry.algorithm == algorithm]
    return why


def test_all_run_on_the_same_fabric_and_all_they_gather_has_crossed_it(tmp_path: Path) -> None:
    names = ("mcast_allgather", *EXTERNAL)
    done = treecast(
        tmp_path, "compare", *LEAFSPINE, "--algorithm", ",".join(names), "--iterations", "2",
        "--output", str(tmp_path / "results"),
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    results = done.summary
    here = {"mcast_allgather", *(OF_MPI if MPI else ()), *(("uftp_broadcast",) if UFTP else ())}
    turns = [(run.algorithm, run.iteration) for run in results.runs]
    assert turns == [(name, i) for i in (1, 2) for name in names if name in here], "in turns, each once"
    for name in set(names) - here:
        assert "not installed: apt-get install" in reason(results, name)
    for run in results.runs:
        assert (run.verified, run.wrong_bytes) == (True, 0)
        blocks = 1 if run.algorithm.endswith("broadcast") else HOSTS - 1
        for host in ("h2", "h3", "h4"):
            assert received(run)[host] > blocks * SIZE, f"{run.algorithm}: nothing goes past the fabric"
            assert received(run)[host] < 1.5 * blocks * SIZE, f"{run.algorithm}: only what the operation needs"
        assert run.cpu["endpoints"] > 0
        if run.algorithm == "uftp_broadcast":
            assert run.seconds is not None
            assert run.extra_seconds[COMMAND] > run.seconds
            assert run.host_tx_bytes["h1"] < 1.1 * SIZE, "it multicasts"
    again = treecast(tmp_path / "again", "compare", str(done.latest))
    assert (again.code, again.err) == (0, "")
    table = again.out.partition("results in")[0].rstrip()
    assert table in done.out, "the same table from the file alone"


@pytest.mark.skipif(not MPI, reason="needs Open MPI and mpi4py")
def test_ranks_that_are_placed_at_random_get_their_own_blocks_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(os.urandom(40_003))
    done = treecast(
        tmp_path, "run", "--topo", "single,hosts=4", "--placement", "random", "--seed", "3", "--input", str(file),
        "--algorithm", "openmpi_ring_allgather", "--output", str(tmp_path / "results"),
    )  # fmt: skip
    assert done.verified().bytes_per_rank == 10_001


def test_what_is_not_installed_has_a_row_that_says_so_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for path in Path(folder).glob("*"):
            link = programs / path.name
            if not path.name.startswith(("mpi", "uftp")) and not link.is_symlink():
                link.symlink_to(path)
    monkeypatch.setenv("PATH", str(programs))
    done = treecast(
        tmp_path, "run", "--topo", "single,hosts=2", "--size", "4KiB", "--output", str(tmp_path / "results"),
        "--algorithm", "uftp_broadcast,mcast_broadcast,openmpi_allgather",
    )  # fmt: skip
    assert done.verified().algorithm == "mcast_broadcast"
    assert reason(done.summary, "uftp_broadcast") == "uftp is not installed: apt-get install uftp"
    assert "openmpi-bin" in reason(done.summary, "openmpi_allgather")
    assert "uftp_broadcast: skipped, uftp is not installed" in done.out
    alone = treecast(tmp_path / "alone", "run", "--algorithm", "uftp_broadcast", "--output", str(tmp_path / "none"))
    assert alone.code == 3
    assert "apt-get install uftp" in alone.err
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not MPI, reason="needs Open MPI and mpi4py")
def test_nothing_of_open_mpi_is_left_when_the_run_is_killed(tmp_path: Path) -> None:
    def ranks() -> int:
        said = map(words, descendants(command.pid))
        return sum("openmpi.worker" in line and "mpirun" not in line for line in said)

    def sessions() -> set[str]:
        return {path.name for path in Path("/tmp").iterdir() if path.name.startswith(("ompi", "openmpi", "pmix"))}

    before = sessions()
    command = Command(
        tmp_path, "run", "--topo", "single,hosts=3", "--bw", "1M", "--size", "4MiB", "--warmup", "0",
        "--algorithm", "openmpi_allgather", "--output", str(tmp_path / "results"),
    ).says("openmpi_allgather 1/1")  # fmt: skip
    try:
        until(lambda: ranks() == 3, "the ranks are there")
        traces = Traces.of(command.pid)
        [init] = children(command.pid)
        os.kill(children(init)[0], signal.SIGKILL)
        done = command.ended(BOUND_S)
    finally:
        command.kill()
    assert done.code == 1
    until(lambda: not traces.left(), "all processes have ended")
    assert sessions() == before, "what it had written was in the run's own folder"


def test_rows_are_json_on_request(tmp_path: Path) -> None:
    done = treecast(
        tmp_path, "compare", "--topo", "single,hosts=2", "--size", "4KiB", "--iterations", "1", "--json",
        "--algorithm", "mcast_allgather", "--output", str(tmp_path / "results"),
    )  # fmt: skip
    assert done.code == 0
    [row] = json.loads(done.out)
    assert (row["algorithm"], row["status"], row["speedup"]) == ("mcast_allgather", "verified", None)
