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
from multiprocessing.connection import Connection
from typing import Any

from experiments.external.openmpi.orders import Answer, Order


def main() -> None:
    """Serve until the other end hangs up."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    with socket.socket(socket.AF_UNIX) as plug:
        plug.connect(sys.argv[1])
        link = Connection(plug.detach())
    link.send((world.Get_rank(), socket.gethostname()))
    while True:
        try:
            order = link.recv()
        except EOFError:
            return
        link.send(_allgather(world, MPI.BYTE, order))


def _allgather(world: Any, byte: Any, order: Order) -> Answer:
    data = order.data.read_bytes()
    with order.received.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            buffer: mmap.mmap | bytearray = bytearray()
        else:  # populated: a page fault costs more than a packet
            buffer = mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        cpu = time.process_time()
        world.Barrier()
        begun = time.monotonic()
        world.Allgather([data, byte], [buffer, byte])
        ended = time.monotonic()
        return Answer(ended - begun, time.process_time() - cpu)


if __name__ == "__main__":
    main()
