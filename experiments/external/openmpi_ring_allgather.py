"""Open MPI's Allgather around a ring, which its own choice leaves aside for blocks as large as ours."""

from __future__ import annotations

from contextlib import AbstractContextManager

from endpoints.collectives.ring_allgather import transfers
from experiments.external.openmpi.job import job
from experiments.external.registry import External
from experiments.external.site import Program, Site
from experiments.movement.bounds import as_scheduled

RING = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allgather_algorithm": "4"}
"""Algorithm 4 is the ring (``ompi_info --param coll tuned --level 9``)."""


BOUND = as_scheduled("the transfers of a ring", transfers)


def start(site: Site) -> AbstractContextManager[Program]:
    """The ring is set."""
    return job(site, "allgather", RING)


EXTERNAL = External(
    "openmpi_ring_allgather",
    "allgather",
    "Open MPI over TCP, its ring",
    start,
    ("mpirun.openmpi", "mpi4py"),
    bound=BOUND,
)
