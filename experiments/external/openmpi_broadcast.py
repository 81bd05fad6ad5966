"""Open MPI's Broadcast, with the algorithm that it chooses by itself."""

from __future__ import annotations

from contextlib import AbstractContextManager

from experiments.external.openmpi.job import job
from experiments.external.registry import External
from experiments.external.site import Program, Site
from experiments.movement.bounds import UNICAST


def start(site: Site) -> AbstractContextManager[Program]:
    """No algorithm is set."""
    return job(site, "broadcast", {})


EXTERNAL = External(
    "openmpi_broadcast",
    "broadcast",
    "Open MPI over TCP, by its own choice",
    start,
    ("mpirun.openmpi", "mpi4py"),
    bound=UNICAST,
)
