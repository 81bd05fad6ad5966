"""What mpirun starts on every host: waits for an operation, does it once, says how long it took.

Run as ``python -m experiments.external.openmpi.worker SOCKET``. Between operations it waits outside of MPI,
since Open MPI waits by polling, and a host that polls takes the CPU from those that are being measured.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from experiments.external.openmpi.orders import Answer, Order


def main() -> None:
    """Serve until the other end hangs up."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    carry_out = {
        "allgather": lambda data, buffer: world.Allgather([data, MPI.BYTE], [buffer, MPI.BYTE]),
        "broadcast": lambda _, buffer: world.Bcast([buffer, MPI.BYTE], root=0),
        "reduce_scatter": lambda data, buffer: world.Reduce_scatter_block(
            [data, MPI.UINT32_T], [buffer, MPI.UINT32_T], op=MPI.SUM
        ),
    }
    with socket.socket(socket.AF_UNIX) as plug:
        plug.connect(sys.argv[1])
        link = Connection(plug.detach())
    link.send((world.Get_rank(), socket.gethostname()))
    while True:
        try:
            order = link.recv()
        except EOFError:
            return
        link.send(_collective(world, carry_out[order.kind], order))


def _collective(world: Any, carry_out: Callable[[bytes, mmap.mmap | bytearray], None], order: Order) -> Answer:
    data = order.data.read_bytes()
    buffer = _mapped(order.received)
    if order.kind == "broadcast" and data:
        buffer[:] = data  # MPI_Bcast sends from where the others receive into
    cpu = time.process_time()
    world.Barrier()
    begun = time.monotonic()
    carry_out(data, buffer)
    ended = time.monotonic()
    return Answer(ended - begun, time.process_time() - cpu)


def _mapped(path: Path) -> mmap.mmap | bytearray:
    """A file to receive into. Its pages are there at once: a page fault costs more than a packet."""
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return bytearray()
        return mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)


if __name__ == "__main__":
    main()
