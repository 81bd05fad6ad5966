"""Open MPI's Reduce-Scatter, with the algorithm that it chooses by itself."""

from __future__ import annotations

from contextlib import AbstractContextManager

from experiments.external.openmpi.job import job
from experiments.external.registry import External
from experiments.external.site import Program, Site
from experiments.movement.bounds import ADDED


def start(site: Site) -> AbstractContextManager[Program]:
    """No algorithm is set."""
    return job(site, "reduce_scatter", {})


EXTERNAL = External(
    "openmpi_reduce_scatter",
    "reduce_scatter",
    "Open MPI over TCP, by its own choice",
    start,
    ("mpirun.openmpi", "mpi4py"),
    bound=ADDED,
)
